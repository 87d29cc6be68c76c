//! Which `.safetensors` files of a folder hold the weights.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use rlx_ir::bail;
use rlx_runtime::weights::{SafetensorsFile, SafetensorsWeights};
use serde::Deserialize;

use super::{is_inside, small};
use crate::{Error, Result};

const INDEX: &str = "model.safetensors.index.json";
const SINGLE: &str = "model.safetensors";
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

impl Index {
    fn read(path: &Path) -> Result<Self> {
        match serde_json::from_slice(&small::read(path)?) {
            Ok(index) => Ok(index),
            Err(e) => bail!(InvalidFile, "{}: {e}", path.display()),
        }
    }

    /// The shards in order, each of which is a name without folders: an index must not reach out of its own.
    fn shards(&self, path: &Path) -> Result<Vec<&str>> {
        let mut shards: Vec<&str> = self.weight_map.values().map(String::as_str).collect();
        shards.sort_unstable();
        shards.dedup();
        if shards.is_empty() || shards.len() > MAX_SHARDS {
            bail!(InvalidFile, "{}: it names {} shards", path.display(), shards.len());
        }
        if let Some(shard) = shards.iter().find(|s| !is_inside(s) || s.contains('/')) {
            bail!(InvalidFile, "{}: {shard:?} is no file name", path.display());
        }
        Ok(shards)
    }
}

/// The shards that an index names.
///
/// # Errors
/// `NotFound`, `Io`; `InvalidFile` for an index that is damaged or names no file.
pub(crate) fn shard_names(index_path: &Path) -> Result<Vec<String>> {
    Ok(Index::read(index_path)?.shards(index_path)?.into_iter().map(str::to_owned).collect())
}

fn open_index(folder: &Path, index_path: &Path) -> Result<SafetensorsWeights> {
    let index = Index::read(index_path)?;
    let shards = index.shards(index_path)?;
    let mut files = Vec::with_capacity(shards.len());
    for shard in &shards {
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
