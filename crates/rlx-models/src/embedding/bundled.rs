//! The model that ships with the project.

use crate::Result;
use crate::files::ModelFiles;

/// The name of the model that ships with the project.
pub const BUNDLED_MODEL: &str = "all-MiniLM-L6-v2";

/// The model that is part of this program; `None` where it was built without the feature `bundled-model`.
///
/// # Errors
/// `InvalidFile` where the bytes are damaged.
#[cfg(feature = "bundled-model")]
pub fn bundled() -> Result<Option<ModelFiles>> {
    use std::sync::Arc;

    /// Weights are used in place, so they must lie as they do in a mapped file.
    #[repr(C, align(64))]
    struct Aligned<T: ?Sized>(T);

    static MODEL: &Aligned<[u8]> = &Aligned(*include_bytes!("../../models/all-MiniLM-L6-v2-q8_0.gguf"));
    let gguf = rlx_gguf::Gguf::from_mapping(&MODEL.0, BUNDLED_MODEL)?;
    ModelFiles::from_gguf(Arc::new(gguf), BUNDLED_MODEL).map(Some)
}

/// The model that is part of this program; `None` where it was built without the feature `bundled-model`.
///
/// # Errors
/// None.
#[cfg(not(feature = "bundled-model"))]
pub fn bundled() -> Result<Option<ModelFiles>> {
    Ok(None)
}
