//! From a path or a hub id to a model's files.

use std::path::Path;

use super::cache::Cache;
use super::id::HubId;
use super::options::HubOptions;
use crate::Result;
use crate::embedding::shipped;
use crate::files::ModelFiles;

/// What running a bare network needs beside config and weights.
pub const NETWORK: &[&str] = &[];
/// What reading or writing text needs besides: `tokenizer_config.json` says which tokens are added, and may hold the chat
/// template.
pub const TEXT: &[&str] = &["tokenizer.json", "tokenizer_config.json"];
/// What vectors of texts need besides: without `modules.json` they would be pooled by guess.
pub const VECTORS: &[&str] = &["tokenizer.json", "tokenizer_config.json", "modules.json"];

/// Opens the model that ships with the project by its name ([`BUNDLED_MODEL`](crate::embedding::BUNDLED_MODEL)), a path, or
/// where there is no such path a hub id that is in the cache. Nothing is downloaded.
///
/// `wanted` names what the model is needed for ([`NETWORK`], [`TEXT`], [`VECTORS`]); what of it the cache may lack is a
/// warning.
///
/// # Errors
/// As [`ModelFiles::open`]; `NotFound` for an id that is not in the cache.
pub fn open(model: &Path, wanted: &[&str]) -> Result<ModelFiles> {
    if let Some(files) = shipped(model)? {
        return Ok(files);
    }
    let id = model.to_str().and_then(HubId::parse).filter(|_| !model.exists());
    let Some(id) = id else { return ModelFiles::open(model) };
    let cached = Cache::new(&HubOptions::from_env()).find(&id, wanted)?;
    if !cached.lacking.is_empty() {
        tracing::warn!(
            "{id}: the cache may lack {}; `rlx pull {id}` completes it",
            cached.lacking.join(", ")
        );
    }
    ModelFiles::open(&cached.path)
}
