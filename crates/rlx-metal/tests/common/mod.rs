//! Simulated hardware for tests.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use rlx_ir::env::Settings;
use rlx_ir::{OpSet, text};
use rlx_metal::MetalBackend;
use rlx_metal::driver::simulator::SimulatorDriver;
use rlx_runtime::weights::NoWeights;
use rlx_runtime::{Runtime, Session, SessionOptions};
use rlx_simulator::{Mode, or_skip};

/// A backend on simulated hardware, if clang is there.
pub fn backend(mode: Mode) -> Option<Arc<MetalBackend<SimulatorDriver>>> {
    let driver = or_skip(SimulatorDriver::new(Path::new(env!("CARGO_TARGET_TMPDIR")), mode))?;
    Some(Arc::new(MetalBackend::new(driver).unwrap()))
}

/// A graph, which must compile.
pub fn session(backend: &Arc<MetalBackend<SimulatorDriver>>, graph: &str) -> Session {
    let graph = text::parse(graph, &OpSet::builtin()).unwrap();
    let runtime = Runtime::new(vec![backend.clone()], Settings::defaults());
    Session::compile(&runtime, &graph, &NoWeights, &SessionOptions::default()).unwrap()
}
