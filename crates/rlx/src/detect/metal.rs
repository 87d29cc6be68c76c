//! The backend for Apple GPUs, or why it is not here.

use std::sync::Arc;

use rlx_runtime::Backend;

/// The backend, where this build has it and this machine can run it. A GPU that is there and cannot be opened leaves the other
/// backends as they are: [`missing`] says why it is not among them.
#[cfg(all(target_os = "macos", feature = "metal"))]
pub(super) fn backend() -> Option<Arc<dyn Backend>> {
    Some(Arc::new(rlx_metal::detect().ok()?))
}

/// The backend, where this build has it and this machine can run it.
#[cfg(not(all(target_os = "macos", feature = "metal")))]
pub(super) fn backend() -> Option<Arc<dyn Backend>> {
    None
}

/// Why it is not here; `None` where it is.
pub(super) fn missing() -> Option<String> {
    #[cfg(all(target_os = "macos", feature = "metal"))]
    let missing = rlx_metal::detect().err().map(|e| e.message().to_owned());
    #[cfg(all(target_os = "macos", not(feature = "metal")))]
    let missing = Some("built without the feature `metal`".to_owned());
    #[cfg(not(target_os = "macos"))]
    let missing = Some("this is not an Apple system".to_owned());
    missing
}
