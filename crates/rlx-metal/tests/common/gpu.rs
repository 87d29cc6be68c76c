//! The GPU of this machine, for tests.
#![allow(clippy::expect_used)]

use rlx_ir::ErrorKind;
use rlx_metal::driver::objc::ObjcDriver;

/// The GPU; `None` where there is none that kernels run on, which is a failure where REQUIRE_METAL is set.
pub fn driver() -> Option<ObjcDriver> {
    let found = ObjcDriver::system_default();
    if let Err(e) = &found
        && e.kind() == ErrorKind::UnsupportedOnDevice
        && std::env::var_os("REQUIRE_METAL").is_none()
    {
        eprintln!("SKIPPED: {e}");
        return None;
    }
    Some(found.expect("a GPU that kernels run on"))
}
