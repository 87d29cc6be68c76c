//! Simulated hardware for tests.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use rlx_metal::MetalBackend;
use rlx_metal::driver::simulator::SimulatorDriver;
use rlx_simulator::Mode;

/// A backend on simulated hardware; `None` where clang is not there, which is a failure where REQUIRE_CLANG is set.
pub fn backend(mode: Mode) -> Option<Arc<MetalBackend<SimulatorDriver>>> {
    match SimulatorDriver::new(Path::new(env!("CARGO_TARGET_TMPDIR")), mode) {
        Ok(driver) => Some(Arc::new(MetalBackend::new(driver).unwrap())),
        Err(e) if std::env::var_os("REQUIRE_CLANG").is_some() => panic!("{e}"),
        Err(e) => {
            eprintln!("SKIPPED: {e}");
            None
        }
    }
}
