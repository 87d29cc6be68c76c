//! The backend for Apple GPUs, or why it is not here.

use std::sync::Arc;

use rlx_runtime::Backend;

use crate::Result;

/// The backend, where this build has it and this machine can run it.
///
/// # Errors
/// `Device` where the GPU is there and cannot be opened.
#[cfg(all(target_os = "macos", feature = "metal"))]
pub(super) fn backend() -> Result<Option<Arc<dyn Backend>>> {
    match rlx_metal::detect() {
        Ok(backend) => Ok(Some(Arc::new(backend))),
        Err(e) if e.kind() == rlx_ir::ErrorKind::UnsupportedOnDevice => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// The backend, where this build has it and this machine can run it.
#[cfg(not(all(target_os = "macos", feature = "metal")))]
#[allow(clippy::unnecessary_wraps)]
pub(super) fn backend() -> Result<Option<Arc<dyn Backend>>> {
    Ok(None)
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
