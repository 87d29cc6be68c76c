//! Which `.safetensors` files of a folder hold the weights.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use rlx_ir::bail;
use rlx_runtime::weights::{SafetensorsFile, SafetensorsWeights};
use serde::Deserialize;

use super::hf_config::read_bounded;
use crate::{Error, Result};

const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";
/// Longer indexes are refused, in bytes.
const MAX_INDEX_BYTES: u64 = 256 << 20;
/// More shards are refused.
const MAX_SHARDS: usize = 10_000;

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The weights of a folder: where there is an index it decides, else `model.safetensors`, else the only file there is.
pub(super) fn open_folder(folder: &Path) -> Result<SafetensorsWeights> {
    let index_path = folder.join(INDEX);
    if index_path.is_file() {
        return open_index(folder, &index_path);
    }
    let single = folder.join(SINGLE);
    let path = if single.is_file() { single } else { only_file(folder)? };
    Ok(SafetensorsWeights::new(vec![SafetensorsFile::open(&path)?]))
}

fn open_index(folder: &Path, index_path: &Path) -> Result<SafetensorsWeights> {
    let index: Index = match serde_json::from_slice(&read_bounded(index_path, MAX_INDEX_BYTES)?) {
        Ok(index) => index,
        Err(e) => bail!(InvalidFile, "{}: {e}", index_path.display()),
    };
    let mut shards: Vec<&str> = index.weight_map.values().map(String::as_str).collect();
    shards.sort_unstable();
    shards.dedup();
    if shards.is_empty() || shards.len() > MAX_SHARDS {
        bail!(InvalidFile, "{}: it names {} shards", index_path.display(), shards.len());
    }
    let mut files = Vec::with_capacity(shards.len());
    for shard in &shards {
        // A name only: an index must not reach out of its folder.
        if Path::new(shard).file_name() != Some(shard.as_ref()) {
            bail!(InvalidFile, "{}: {shard:?} is no file name", index_path.display());
        }
        let missing = |e: rlx_runtime::Error| e.context(format_args!("shard named by {INDEX}"));
        files.push(SafetensorsFile::open(&folder.join(shard)).map_err(missing)?);
    }
    check_index(&index, &shards, &files).map_err(|e| e.context(index_path.display()))?;
    Ok(SafetensorsWeights::new(files))
}

/// Every tensor stands in the shard that the index names, and in no other.
fn check_index(index: &Index, shards: &[&str], files: &[SafetensorsFile]) -> Result<()> {
    let mut places: HashMap<&str, &str> = HashMap::new();
    for (shard, file) in shards.iter().zip(files) {
        for (name, _, _) in file.tensors() {
            if let Some(other) = places.insert(name, shard) {
                bail!(InvalidFile, "tensor {name:?} stands in both {other} and {shard}");
            }
        }
    }
    for (name, shard) in &index.weight_map {
        match places.get(name.as_str()) {
            Some(found) if found == shard => {}
            Some(found) => bail!(InvalidFile, "tensor {name:?} should be in {shard}, but is in {found}"),
            None => bail!(InvalidFile, "tensor {name:?} should be in {shard}, but is not there"),
        }
    }
    Ok(())
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) => bail!(Io, "{}: {e}", folder.display()),
    };
    let mut found: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| is_safetensors(p)).collect();
    found.sort();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => bail!(
            NotFound,
            "{}: there is neither {SINGLE} nor {INDEX}; other formats of weights are not read",
            folder.display()
        ),
        many => bail!(
            NotFound,
            "{}: there are {} .safetensors files, but neither {SINGLE} nor {INDEX}: name one of them",
            folder.display(),
            many.len()
        ),
    }
}

pub(super) fn is_safetensors(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("safetensors"))
}
