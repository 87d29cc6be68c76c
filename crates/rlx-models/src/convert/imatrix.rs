//! Importance matrices: how much each column of a matrix matters, as llama.cpp measures and stores it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rlx_gguf::{Gguf, Mapping};
use rlx_ir::bail;
use rlx_ir::convert::decode_row;

use crate::{Error, Result};

/// The importance of columns, by the name of the matrix. A stack of matrices, as of experts, has columns for each of them.
#[derive(Clone, Debug, Default)]
pub struct Imatrix {
    /// Where it was read from.
    path: PathBuf,
    columns: HashMap<String, Vec<f32>>,
}

impl Imatrix {
    /// Reads a file: GGUF with `NAME.in_sum2` and `NAME.counts`, or the older binary format.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `InvalidFile` where it is no file, is damaged or holds no matrices.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = Mapping::open(path)?;
        let columns = match bytes.starts_with(b"GGUF") {
            true => from_gguf(&Gguf::from_mapping(bytes, path)?),
            false => from_binary(&bytes),
        };
        let columns = columns.map_err(|e| e.context(path.display()))?;
        if columns.is_empty() {
            bail!(InvalidFile, "{}: it holds no matrices", path.display());
        }
        Ok(Self { path: path.to_owned(), columns })
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The importance of the columns of a tensor with `matrices` matrices whose rows have `row_elems` elements, one matrix after
    /// the other; `None` where it was not measured.
    ///
    /// # Errors
    /// `InvalidFile` where another number of columns was measured.
    pub fn importance(&self, name: &str, matrices: usize, row_elems: usize) -> Result<Option<&[f32]>> {
        match self.columns.get(name) {
            None => Ok(None),
            Some(columns) if matrices.checked_mul(row_elems) == Some(columns.len()) => Ok(Some(columns)),
            Some(columns) => bail!(
                InvalidFile,
                "the importance matrix has {} columns for tensor {name:?}, which has {matrices} x {row_elems}",
                columns.len()
            ),
        }
    }
}

fn from_gguf(gguf: &Gguf) -> Result<HashMap<String, Vec<f32>>> {
    let mut out = HashMap::new();
    for tensor in gguf.tensors() {
        let Some(name) = tensor.name().strip_suffix(".in_sum2") else { continue };
        let floats = |name: &str| -> Result<Vec<f32>> {
            let tensor = gguf.tensor(name)?;
            let mut values = vec![0f32; tensor.elems()];
            decode_row(tensor.dtype()?, tensor.bytes(), &mut values)?;
            Ok(values)
        };
        let (sums, counts) = (floats(tensor.name())?, floats(&format!("{name}.counts"))?);
        if counts.is_empty() || !sums.len().is_multiple_of(counts.len()) {
            bail!(InvalidFile, "{name:?} has {} counts for {} sums", counts.len(), sums.len());
        }
        if counts.iter().all(|count| *count == 0.0) {
            continue;
        }
        // One count for each matrix of a stack; of one that never ran, all columns count alike.
        let parts = sums.chunks(sums.len() / counts.len()).zip(&counts);
        let columns = parts.flat_map(|(sums, &count)| {
            sums.iter().map(move |sum| if count == 0.0 { 1.0 } else { sum / count })
        });
        out.insert(name.to_owned(), checked(name, columns.collect())?);
    }
    Ok(out)
}

/// `i32` entries; for each one `i32` length and bytes of its name, `i32` calls, `i32` columns, `f32` per column.
fn from_binary(mut bytes: &[u8]) -> Result<HashMap<String, Vec<f32>>> {
    let mut out = HashMap::new();
    let entries = count(&mut bytes)?;
    for _ in 0..entries {
        let len = count(&mut bytes)?;
        let name = String::from_utf8_lossy(take(&mut bytes, len)?).into_owned();
        let calls = count(&mut bytes)?;
        let columns = count(&mut bytes)?;
        let Some(size) = columns.checked_mul(4) else { bail!(InvalidFile, "{columns} columns are too many") };
        let values = take(&mut bytes, size)?.as_chunks().0;
        let scale = calls.max(1) as f32;
        let values = checked(&name, values.iter().map(|b| f32::from_le_bytes(*b) / scale).collect())?;
        if calls > 0 {
            out.insert(name, values);
        }
    }
    Ok(out)
}

fn take<'a>(bytes: &mut &'a [u8], len: usize) -> Result<&'a [u8]> {
    match bytes.split_at_checked(len) {
        Some((head, rest)) => {
            *bytes = rest;
            Ok(head)
        }
        None => bail!(InvalidFile, "{len} bytes are expected where {} are left", bytes.len()),
    }
}

fn count(bytes: &mut &[u8]) -> Result<usize> {
    let four = take(bytes, 4)?;
    match four.try_into().map(i32::from_le_bytes).map(usize::try_from) {
        Ok(Ok(n)) => Ok(n),
        _ => bail!(InvalidFile, "a count is negative"),
    }
}

fn checked(name: &str, columns: Vec<f32>) -> Result<Vec<f32>> {
    match columns.iter().find(|v| !(v.is_finite() && **v >= 0.0)) {
        None => Ok(columns),
        Some(bad) => bail!(InvalidFile, "{name:?} has the importance {bad}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(columns: i32, values: &[f32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for n in [1i32, 1] {
            bytes.extend(n.to_le_bytes());
        }
        bytes.push(b'w');
        for n in [4, columns] {
            bytes.extend(n.to_le_bytes());
        }
        values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
        bytes
    }

    #[test]
    fn sums_are_divided_by_calls() {
        let imatrix =
            Imatrix { path: PathBuf::new(), columns: from_binary(&binary(2, &[4.0, 8.0])).unwrap() };
        assert_eq!(imatrix.importance("w", 1, 2).unwrap(), Some(&[1.0, 2.0][..]));
        assert_eq!(imatrix.importance("v", 1, 2).unwrap(), None);
        assert!(imatrix.importance("w", 1, 3).is_err());
        // Two matrices of one column each.
        assert_eq!(imatrix.importance("w", 2, 1).unwrap(), Some(&[1.0, 2.0][..]));
    }

    #[test]
    fn damage_is_an_error_within_bounded_memory() {
        for bytes in [binary(i32::MAX, &[1.0]), binary(-1, &[]), binary(1, &[f32::NAN]), vec![9; 3]] {
            assert_eq!(from_binary(&bytes).unwrap_err().kind(), rlx_ir::ErrorKind::InvalidFile);
        }
    }
}
