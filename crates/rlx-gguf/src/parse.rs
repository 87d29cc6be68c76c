//! One file's header: version, metadata, tensor directory.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rlx_ir::bail;

use crate::cursor::{Cursor, Width};
use crate::metadata::Entries;
use crate::value::{self, ValueType};
use crate::{
    ALIGNMENT_KEY, DEFAULT_ALIGNMENT, Error, GgmlType, MAGIC, MAX_DIMS, Mapping, Metadata, Result, TensorInfo,
};

/// What one file holds.
pub(crate) struct Parsed {
    pub(crate) version: u32,
    pub(crate) alignment: usize,
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<TensorInfo>,
}

/// Reads and checks everything but the tensors' data. Errors name `file`.
pub(crate) fn parse(mapping: &Mapping, file: &Arc<Path>) -> Result<Parsed> {
    parse_header(mapping, file).map_err(|e| e.context(file.display()))
}

fn parse_header(mapping: &Mapping, file: &Arc<Path>) -> Result<Parsed> {
    let mut cursor = Cursor::new(mapping, Width::Eight);
    check_magic(cursor.take(4, "the magic number")?)?;
    let version = read_version(cursor.u32("the version")?)?;
    cursor.width = if version == 1 { Width::Four } else { Width::Eight };
    let width = cursor.width.bytes();

    // Both counts lie side by side. Least sizes: name length, number of axes, type, offset; key length, type, one byte.
    let num_tensors = cursor.count(width + 16, "the number of tensors")?;
    let num_entries = cursor.count(width + 5, "the number of metadata entries")?;
    let metadata = read_metadata(&mut cursor, mapping, num_entries)?;
    let alignment = read_alignment(&metadata)?;
    let tensors = read_tensors(&mut cursor, mapping, file, num_tensors, alignment)?;
    Ok(Parsed { version, alignment, metadata, tensors })
}

fn check_magic(magic: &[u8]) -> Result<()> {
    match magic {
        m if m == MAGIC => Ok(()),
        b"lmgg" | b"fmgg" | b"tjgg" | b"algg" => {
            bail!(UnsupportedModel, "a ggml file from before GGUF: convert the model again from its source")
        }
        b"vers" => bail!(InvalidFile, "not GGUF: this looks like a Git LFS pointer, fetch the file itself"),
        other => {
            bail!(InvalidFile, "not GGUF: it starts with \"{}\" instead of \"GGUF\"", other.escape_ascii())
        }
    }
}

fn read_version(version: u32) -> Result<u32> {
    match version {
        1..=3 => Ok(version),
        v if v & 0xffff == 0 && matches!(v.swap_bytes(), 1..=3) => {
            bail!(UnsupportedModel, "a big-endian GGUF file: only little-endian files are supported")
        }
        0 => bail!(InvalidFile, "GGUF version 0 does not exist"),
        v => bail!(UnsupportedModel, "GGUF version {v} is not known: versions 1 to 3 are"),
    }
}

fn read_metadata(cursor: &mut Cursor, mapping: &Mapping, count: usize) -> Result<Metadata> {
    let mut entries = Entries::default();
    for i in 0..count {
        let key = cursor.str("a metadata key").map_err(|e| e.context(format_args!("metadata entry {i}")))?;
        let in_key = |e: Error| e.context(format_args!("metadata key `{}`", shorten(key)));
        let value_type = cursor.u32("the type of a value").and_then(ValueType::from_id).map_err(in_key)?;
        let start = cursor.position();
        value::check(cursor, value_type).map_err(in_key)?;
        if !entries.insert(key, value_type, start..cursor.position()) {
            return Err(in_key(Error::new(rlx_ir::ErrorKind::InvalidFile, "occurs twice")));
        }
    }
    Ok(Metadata::new(mapping.clone(), entries, cursor.width))
}

fn read_alignment(metadata: &Metadata) -> Result<usize> {
    match metadata.u64(ALIGNMENT_KEY)? {
        None => Ok(DEFAULT_ALIGNMENT),
        Some(n) => match usize::try_from(n) {
            Ok(n) if n.is_power_of_two() => Ok(n),
            _ => bail!(InvalidFile, "metadata key `{ALIGNMENT_KEY}` is {n}, expected a power of two"),
        },
    }
}

fn read_tensors(
    cursor: &mut Cursor,
    mapping: &Mapping,
    file: &Arc<Path>,
    count: usize,
    alignment: usize,
) -> Result<Vec<TensorInfo>> {
    // Checked once more: the metadata took bytes that the first check still counted.
    let least = cursor.width.bytes() + 16;
    if count > cursor.remaining() / least {
        bail!(
            InvalidFile,
            "the number of tensors is {count}, but the rest of the file holds at most {}",
            cursor.remaining() / least
        );
    }
    // Grown as entries are read: a damaged count must not reserve memory.
    let mut tensors = Vec::new();
    let mut names = HashSet::new();
    for i in 0..count {
        let name = cursor.str("a tensor name").map_err(|e| e.context(format_args!("tensor {i}")))?;
        let in_tensor = |e: Error| e.context(format_args!("tensor `{}`", shorten(name)));
        if !names.insert(name) {
            return Err(in_tensor(Error::new(rlx_ir::ErrorKind::InvalidFile, "occurs twice")));
        }
        tensors.push(read_tensor(cursor, name, mapping, file).map_err(in_tensor)?);
    }
    place(&mut tensors, cursor.position(), mapping.len(), alignment)?;
    Ok(tensors)
}

/// Reads one entry; its range is still relative to the data section.
fn read_tensor(cursor: &mut Cursor, name: &str, mapping: &Mapping, file: &Arc<Path>) -> Result<TensorInfo> {
    let num_dims = cursor.u32("the number of axes")? as usize;
    if num_dims > MAX_DIMS {
        bail!(InvalidFile, "has {num_dims} axes, expected at most {MAX_DIMS}");
    }
    let mut dims = [0; MAX_DIMS];
    for dim in dims[..num_dims].iter_mut().rev() {
        let size = cursor.length("the size of an axis")?;
        match usize::try_from(size) {
            Ok(size) if isize::try_from(size).is_ok() => *dim = size,
            _ => bail!(InvalidFile, "has an axis of size {size}"),
        }
    }
    let ggml_type = GgmlType::from_id(cursor.u32("the type of a tensor")?)?;
    let bytes = ggml_type.tensor_bytes(&dims[..num_dims])?;
    let offset = cursor.u64("the offset of a tensor")?;
    let end = offset.checked_add(bytes as u64);
    let (Ok(start), Some(Ok(end))) = (usize::try_from(offset), end.map(usize::try_from)) else {
        bail!(InvalidFile, "its offset {offset} and size {bytes} overflow");
    };
    Ok(TensorInfo {
        name: name.into(),
        ggml_type,
        dims,
        num_dims,
        range: start..end,
        mapping: mapping.clone(),
        file: file.clone(),
    })
}

/// Moves the tensors' ranges from the data section, which starts after `header` bytes, into the file.
fn place(tensors: &mut [TensorInfo], header: usize, file_bytes: usize, alignment: usize) -> Result<()> {
    if tensors.is_empty() {
        return Ok(());
    }
    let Some(data) = header.checked_next_multiple_of(alignment) else {
        bail!(
            InvalidFile,
            "metadata key `{ALIGNMENT_KEY}` is {alignment}: the data would start beyond the file"
        );
    };
    for tensor in tensors {
        let std::ops::Range { start, end } = tensor.range;
        if start % alignment != 0 {
            bail!(
                InvalidFile,
                "tensor `{}`: its offset {start} is no multiple of the alignment {alignment}",
                shorten(&tensor.name)
            );
        }
        match (data.checked_add(start), data.checked_add(end)) {
            (Some(start), Some(end)) if end <= file_bytes => tensor.range = start..end,
            _ => bail!(
                InvalidFile,
                "tensor `{}`: its bytes {start}..{end} of the data lie beyond the end of the file, which holds {}",
                shorten(&tensor.name),
                file_bytes.saturating_sub(data)
            ),
        }
    }
    Ok(())
}

/// A name for an error message: cut where a hostile file makes it endless.
pub(crate) fn shorten(name: &str) -> std::borrow::Cow<'_, str> {
    const MOST: usize = 128;
    match name.char_indices().nth(MOST) {
        Some((cut, _)) => format!("{}...", &name[..cut]).into(),
        None => name.into(),
    }
}
