//! The tensors of a conversion: which, in which order, and their bytes.

use rlx_gguf::{DataWriter, TensorSink};
use rlx_ir::convert::{decode_row, encode_row};
use rlx_ir::{DType, bail};
use rlx_runtime::weights::{WeightBytes, WeightData};

use super::options::{Fallback, QuantizeOptions};
use super::types;
use crate::files::{ModelConfig, ModelFiles, NameTable};
use crate::{Error, Result};

/// Source bytes of a piece per thread.
const PIECE_BYTES: usize = 1 << 20;
/// More threads would wait for the disk.
const MAX_THREADS: usize = 16;

/// A tensor to write.
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) raw: String,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
    /// The data, where it is not that of `raw`.
    data: Option<WeightData>,
}

impl Tensor {
    pub(super) fn fallback(&self, asked: DType) -> Option<Fallback> {
        let row_elems = self.shape.last().copied().unwrap_or(1);
        let fell_back = types::is_matrix(&self.name, &self.shape) && self.dtype != asked;
        fell_back.then(|| Fallback { name: self.name.clone(), row_elems, dtype: self.dtype })
    }
}

/// The tensors to write in order, and the names of those that are left out.
/// `others` take the place of tensors of the same name, or are added.
pub(super) fn list(
    files: &ModelFiles,
    options: &QuantizeOptions,
    mut others: Vec<(String, WeightData)>,
) -> Result<(Vec<Tensor>, Vec<String>)> {
    let mut skipped = Vec::new();
    let names: Vec<(String, String)> = match files.config() {
        ModelConfig::Gguf(gguf) => {
            gguf.tensors().iter().map(|t| (t.name().to_owned(), t.name().to_owned())).collect()
        }
        ModelConfig::Hf(_) => {
            let table = files.supported()?.names;
            let mut named = Vec::new();
            for raw in files.tensor_names().iter() {
                match table.canonical(raw) {
                    Some(name) => named.push((name, raw.clone())),
                    None => skipped.push(raw.clone()),
                }
            }
            named.sort_by_key(|(name, _)| order(table, name));
            if let Some(pair) = named.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                bail!(
                    InvalidFile,
                    "{}: tensors {:?} and {:?} are both {}",
                    files.path().display(),
                    pair[0].1,
                    pair[1].1,
                    pair[0].0
                );
            }
            named
        }
    };
    let mut tensors = Vec::with_capacity(names.len());
    let mut push = |name: String, raw: String, data: Option<WeightData>| -> Result<()> {
        let ty = match &data {
            Some(data) => data.ty.clone(),
            None => files.source().weight(&raw)?.ty,
        };
        let dtype = types::target(&name, &ty.shape, ty.dtype, options.ty);
        tensors.push(Tensor { name, raw, shape: ty.shape, dtype, data });
        Ok(())
    };
    for (name, raw) in names {
        let other = others.iter().position(|(other, _)| *other == name);
        push(name, raw, other.map(|i| others.remove(i).1))?;
    }
    for (name, data) in others {
        push(name.clone(), name, Some(data))?;
    }
    Ok((tensors, skipped))
}

/// Tensors outside of layers, then the layers by number; within them the order of the table.
fn order(table: &NameTable, name: &str) -> (usize, usize) {
    let mut parts = name.split('.');
    let layer = match (parts.next(), parts.next().map(str::parse::<u32>)) {
        (Some("blk"), Some(Ok(layer))) => layer as usize + 1,
        _ => 0,
    };
    let pattern = match layer {
        0 => name.to_owned(),
        layer => name.replacen(&format!("blk.{}.", layer - 1), "blk.{i}.", 1),
    };
    let place = table.aliases.iter().position(|(canonical, _)| *canonical == pattern);
    (layer, place.unwrap_or(usize::MAX))
}

/// Writes the data of one tensor in pieces, and gives the source's pages back.
pub(super) fn write(
    data: &mut DataWriter,
    files: &ModelFiles,
    tensor: &Tensor,
    options: &QuantizeOptions,
) -> Result<()> {
    let source = match &tensor.data {
        Some(data) => data.clone(),
        None => files.source().weight(&tensor.raw)?,
    };
    let row = tensor.shape.last().copied().unwrap_or(1);
    let importance = match (&options.imatrix, tensor.dtype.is_block()) {
        (Some(imatrix), true) => imatrix.importance(&tensor.name, row)?,
        _ => None,
    };
    let rows = Rows { from: source.ty.dtype, to: tensor.dtype, row, importance };
    data.tensor(&tensor.name, |sink| {
        rows.write(&source.bytes, sink).map_err(|e| e.context(format_args!("tensor {:?}", tensor.name)))
    })
}

struct Rows<'a> {
    from: DType,
    to: DType,
    row: usize,
    importance: Option<&'a [f32]>,
}

impl Rows<'_> {
    fn write(&self, source: &WeightBytes, sink: &mut TensorSink<'_>) -> Result<()> {
        if self.row == 0 || source.is_empty() {
            return Ok(());
        }
        let (Some(from), Some(to)) = (self.from.row_bytes(self.row), self.to.row_bytes(self.row)) else {
            bail!(Bug, "rows of {} elements cannot go from {} to {}", self.row, self.from, self.to);
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let rows_per_thread = (PIECE_BYTES / from).max(1);
        let mut out = Vec::new();
        for (i, piece) in source.chunks(rows_per_thread * threads * from).enumerate() {
            if self.from == self.to {
                sink.write(piece)?;
            } else {
                out.resize(piece.len() / from * to, 0u8);
                let parts = piece.chunks(rows_per_thread * from).zip(out.chunks_mut(rows_per_thread * to));
                std::thread::scope(|scope| {
                    let work: Vec<_> = parts
                        .map(|(piece, out)| scope.spawn(move || self.convert(piece, from, out, to)))
                        .collect();
                    work.into_iter().try_for_each(|w| match w.join() {
                        Ok(result) => result,
                        Err(_) => bail!(Bug, "converting a piece failed"),
                    })
                })?;
                sink.write(&out)?;
            }
            let start = i * rows_per_thread * threads * from;
            source.release(start..start + piece.len());
        }
        Ok(())
    }

    fn convert(&self, piece: &[u8], from: usize, out: &mut [u8], to: usize) -> Result<()> {
        let mut floats = vec![0f32; self.row];
        for (source, out) in piece.chunks(from).zip(out.chunks_mut(to)) {
            decode_row(self.from, source, &mut floats)?;
            if let Some(bad) = floats.iter().find(|v| !v.is_finite()) {
                bail!(NonFinite, "it holds {bad}");
            }
            encode_row(self.to, &floats, self.importance, out)?;
        }
        Ok(())
    }
}
