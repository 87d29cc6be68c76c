//! Reading whole files within a bound.

use std::io::Read;
use std::path::Path;

use rlx_ir::bail;

use crate::{Error, Result};

/// Longer files beside a model (a tokenizer, a chat template) are refused, in bytes.
pub(crate) const MAX_SIDE_FILE: u64 = 512 << 20;

/// The bytes of a regular file that is at most `max` long: no pipe is waited for, and no device fills the memory.
///
/// # Errors
/// `NotFound`, `Io`; `InvalidFile` for something else than a file, and for a longer one.
pub(crate) fn read_bounded(path: &Path, max: u64) -> Result<Vec<u8>> {
    let bytes = read_start(path, max + 1)?;
    if bytes.len() as u64 > max {
        bail!(InvalidFile, "{}: longer than {max} bytes", path.display());
    }
    Ok(bytes)
}

/// The first bytes of a regular file, `max` at most.
///
/// # Errors
/// As [`read_bounded`].
pub(crate) fn read_start(path: &Path, max: u64) -> Result<Vec<u8>> {
    let io = |e: std::io::Error| {
        let kind = match e.kind() {
            std::io::ErrorKind::NotFound => rlx_ir::ErrorKind::NotFound,
            _ => rlx_ir::ErrorKind::Io,
        };
        Error::new(kind, format!("{}: {e}", path.display()))
    };
    if !path.metadata().map_err(io)?.is_file() {
        bail!(InvalidFile, "{}: not a regular file", path.display());
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(io)?.take(max).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// The text of a file beside a model.
///
/// # Errors
/// As [`read_bounded`]; `InvalidFile` where it is not UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    match String::from_utf8(read_bounded(path, MAX_SIDE_FILE)?) {
        Ok(text) => Ok(text),
        Err(e) => bail!(InvalidFile, "{}: {e}", path.display()),
    }
}
