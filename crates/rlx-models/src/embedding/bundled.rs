//! The model that ships with the project.

use std::path::Path;

use rlx_ir::bail;

use crate::files::ModelFiles;
use crate::{Error, Result};

/// The name of the model that ships with the project. It always means that one: a file or folder that is called so is
/// `./all-MiniLM-L6-v2`.
pub const BUNDLED_MODEL: &str = "all-MiniLM-L6-v2";

/// The model that ships with the project, where `model` is its name; `None` for anything else.
///
/// # Errors
/// `NotFound` where the program was built without it; `InvalidFile` where its bytes are damaged.
pub fn shipped(model: &Path) -> Result<Option<ModelFiles>> {
    if model.as_os_str() != BUNDLED_MODEL {
        return Ok(None);
    }
    match bundled()? {
        Some(files) => Ok(Some(files)),
        None => bail!(
            NotFound,
            "{BUNDLED_MODEL} is not part of this program, which was built without the feature bundled-model; a folder of that \
             name is ./{BUNDLED_MODEL}"
        ),
    }
}

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
