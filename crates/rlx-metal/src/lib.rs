//! RLX on Apple GPUs.
//!
//! - `driver`: the border to a GPU, with two implementations: Objective-C, and a simulator for tests on Linux;
//! - `backend`: weights, thunks over a plan's steps, and one command buffer for each run.
//!
//! On systems without Metal this crate is empty, unless the feature `simulator` makes it a test of itself.

#[cfg(any(target_os = "macos", feature = "simulator"))]
mod backend;
#[cfg(any(target_os = "macos", feature = "simulator"))]
pub mod driver;
#[cfg(any(target_os = "macos", feature = "simulator"))]
mod error;

#[cfg(any(target_os = "macos", feature = "simulator"))]
pub use backend::MetalBackend;
#[cfg(any(target_os = "macos", feature = "simulator"))]
pub use error::{Error, Result};

/// The backend on this system's GPU.
///
/// # Errors
/// `UnsupportedOnDevice` where there is none that kernels run on; `Device` where it cannot be opened.
#[cfg(target_os = "macos")]
pub fn detect() -> Result<MetalBackend<driver::objc::ObjcDriver>> {
    MetalBackend::new(driver::objc::ObjcDriver::system_default()?)
}
