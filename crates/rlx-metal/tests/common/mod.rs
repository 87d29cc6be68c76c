//! Simulated hardware for tests.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use rlx_metal::MetalBackend;
use rlx_metal::driver::simulator::SimulatorDriver;
use rlx_simulator::{Mode, or_skip};

/// A backend on simulated hardware, if clang is there.
pub fn backend(mode: Mode) -> Option<Arc<MetalBackend<SimulatorDriver>>> {
    let driver = or_skip(SimulatorDriver::new(Path::new(env!("CARGO_TARGET_TMPDIR")), mode))?;
    Some(Arc::new(MetalBackend::new(driver).unwrap()))
}
