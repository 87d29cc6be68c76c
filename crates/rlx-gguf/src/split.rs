//! Files that hold one model in several shards: `model-00001-of-00003.gguf`.

use std::path::{Path, PathBuf};

use rlx_ir::bail;

use crate::{Error, Metadata, Result};

const NO_KEY: &str = "split.no";
const COUNT_KEY: &str = "split.count";
const TENSORS_KEY: &str = "split.tensors.count";

/// What a shard says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// From 0.
    pub(crate) no: u32,
    pub(crate) count: u32,
    /// Tensors of all shards.
    pub(crate) num_tensors: Option<u64>,
}

/// The split keys; `None` for a file that is whole.
pub(crate) fn of(metadata: &Metadata) -> Result<Option<Split>> {
    let count = metadata.u32(COUNT_KEY)?.unwrap_or(0);
    if count < 2 {
        return Ok(None);
    }
    // The key is a u16 in every file that follows the format.
    if count > u32::from(u16::MAX) {
        bail!(InvalidFile, "metadata key `{COUNT_KEY}` is {count}, expected at most {}", u16::MAX);
    }
    let no = metadata.require_u32(NO_KEY)?;
    if no >= count {
        bail!(InvalidFile, "metadata key `{NO_KEY}` is {no}, but `{COUNT_KEY}` is {count}");
    }
    Ok(Some(Split { no, count, num_tensors: metadata.u64(TENSORS_KEY)? }))
}

/// The path of shard `no` (from 0) of `count`: `shard_path("dir/model", 0, 3)` is `dir/model-00001-of-00003.gguf`.
pub fn shard_path(prefix: impl AsRef<Path>, no: u32, count: u32) -> PathBuf {
    let mut path = prefix.as_ref().as_os_str().to_owned();
    path.push(suffix(no, count));
    path.into()
}

fn suffix(no: u32, count: u32) -> String {
    format!("-{:05}-of-{count:05}.gguf", u64::from(no) + 1)
}

/// The path without the suffix of this shard. Errors: `InvalidFile` where the name has another one.
pub(crate) fn prefix(path: &Path, split: Split) -> Result<PathBuf> {
    let suffix = suffix(split.no, split.count);
    let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(&suffix));
    match name {
        Some(name) => Ok(path.with_file_name(name)),
        None => bail!(
            InvalidFile,
            "{}: this is shard {} of {}, but its name does not end in `{suffix}`, so the others cannot be found",
            path.display(),
            split.no + 1,
            split.count
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_shards_go_both_ways() {
        let path = shard_path("dir/model", 1, 12);
        assert_eq!(path, Path::new("dir/model-00002-of-00012.gguf"));
        let split = Split { no: 1, count: 12, num_tensors: None };
        assert_eq!(prefix(&path, split).unwrap(), Path::new("dir/model"));
        assert!(prefix(&path, Split { no: 2, ..split }).unwrap_err().message().contains("shard 3 of 12"));
        assert!(prefix(Path::new("model.gguf"), split).is_err());
    }
}
