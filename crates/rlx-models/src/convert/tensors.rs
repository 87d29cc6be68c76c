//! The tensors of a conversion: which, in which order, and their bytes.

use std::collections::BTreeSet;

use rlx_gguf::{DataWriter, TensorSink};
use rlx_ir::convert::{decode_row, encode_row};
use rlx_ir::{DType, TensorType, bail};
use rlx_runtime::weights::{WeightBytes, WeightData};

use super::options::{Fallback, QuantizeOptions};
use super::types;
use crate::files::{ModelConfig, ModelFiles, NameTable, NamedWeights};
use crate::{Error, Result};

/// Source bytes of a piece per thread.
const PIECE_BYTES: usize = 1 << 20;
/// More threads would wait for the disk, unless they are asked for.
const DEFAULT_THREADS: usize = 16;
/// The most threads that can be asked for.
const MAX_THREADS: usize = 1024;

/// What becomes of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It stays.
    Keep,
    /// It is left out.
    LeaveOut,
    /// Of each head, the rows that rope turns together become neighbours.
    PairRows {
        /// How many heads share the rows.
        heads: usize,
    },
    /// 1 is added to each element.
    AddOne,
}

/// A tensor to write.
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) dtype: DType,
    change: Change,
}

impl Tensor {
    pub(super) fn fallback(&self, asked: DType) -> Option<Fallback> {
        let row_elems = self.shape.last().copied().unwrap_or(1);
        let fell_back = types::is_matrix(&self.name, &self.shape) && self.dtype != asked;
        fell_back.then(|| Fallback { name: self.name.clone(), row_elems, dtype: self.dtype })
    }
}

/// The tensors to write in order, and the names of those that are left out. `change` says what becomes of each.
pub(super) fn list(
    files: &ModelFiles,
    weights: &NamedWeights,
    options: &QuantizeOptions,
    change: &dyn Fn(&str) -> Change,
) -> Result<(Vec<Tensor>, Vec<String>)> {
    let mut skipped = Vec::new();
    let names: Vec<String> = match files.config() {
        ModelConfig::Gguf(gguf) => gguf.tensors().iter().map(|t| t.name().to_owned()).collect(),
        ModelConfig::Hf(_) => named(files, weights, &mut skipped)?,
    };
    let mut tensors = Vec::with_capacity(names.len());
    for name in names {
        let Some(ty) = weights.find_type(&name)? else { bail!(Bug, "no tensor {name:?}") };
        let change = change(&name);
        if change == Change::LeaveOut {
            skipped.extend(weights.parts_of(&name));
            continue;
        }
        let dtype = types::target(&name, &ty.shape, ty.dtype, options.ty);
        tensors.push(Tensor { name, shape: ty.shape, dtype, change });
    }
    Ok((tensors, skipped))
}

/// The canonical names of a model in the Hugging Face layout, in order; adds the files' names of what has none to `skipped`.
fn named(files: &ModelFiles, weights: &NamedWeights, skipped: &mut Vec<String>) -> Result<Vec<String>> {
    let table = files.supported()?.names;
    let mut all: BTreeSet<String> = weights.added().map(str::to_owned).collect();
    for raw in files.tensor_names().iter() {
        match table.canonical(raw) {
            Some(name) => {
                all.insert(name);
            }
            None => skipped.push(raw.clone()),
        }
    }
    let mut names: Vec<String> = all.into_iter().collect();
    names.sort_by_key(|name| order(table, name));
    Ok(names)
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
    weights: &NamedWeights,
    tensor: &Tensor,
    options: &QuantizeOptions,
) -> Result<()> {
    let row = tensor.shape.last().copied().unwrap_or(1);
    let importance = importance(tensor, options)?;
    let rows_per_matrix = matrices(&tensor.shape).1;
    let place = |e: Error| e.context(format_args!("tensor {:?}", tensor.name));
    let source = changed(weights.require(&tensor.name)?, tensor.change).map_err(place)?;
    let threads = threads(options)?;
    let rows = Rows { from: source.ty.dtype, to: tensor.dtype, row, rows_per_matrix, importance, threads };
    data.tensor(&tensor.name, |sink| rows.write(&source.bytes, sink).map_err(place))
}

/// How many threads convert.
///
/// # Errors
/// `InvalidArgument` for more than there can be.
pub(super) fn threads(options: &QuantizeOptions) -> Result<usize> {
    match options.threads.map(usize::from) {
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from).min(DEFAULT_THREADS)),
        Some(threads) if threads <= MAX_THREADS => Ok(threads),
        Some(threads) => bail!(InvalidArgument, "{threads} threads: at most {MAX_THREADS} convert"),
    }
}

fn changed(source: WeightData, change: Change) -> Result<WeightData> {
    let WeightData { ty, bytes } = source;
    let first = ty.shape.first().copied().unwrap_or(1).max(1);
    let row_bytes = bytes.len() / first;
    let (dtype, bytes) = match change {
        Change::Keep | Change::LeaveOut => (ty.dtype, bytes),
        Change::PairRows { heads } => {
            let head_dim = first / heads.max(1);
            let paired = WeightBytes::filled(bytes.len(), |paired| {
                for (row, out) in paired.chunks_exact_mut(row_bytes.max(1)).enumerate() {
                    let (head, within) = (row / head_dim.max(1), row % head_dim.max(1));
                    let from = head * head_dim + within % 2 * (head_dim / 2) + within / 2;
                    match bytes.get(from * row_bytes..(from + 1) * row_bytes) {
                        Some(row) => out.copy_from_slice(row),
                        None => bail!(Bug, "{first} rows are no {heads} heads"),
                    }
                }
                Ok::<(), Error>(())
            })?;
            (ty.dtype, paired)
        }
        Change::AddOne => {
            let mut values = vec![0f32; ty.elems()];
            decode_row(ty.dtype, &bytes, &mut values)?;
            let bytes: Vec<u8> = values.iter().flat_map(|v| (v + 1.0).to_le_bytes()).collect();
            (DType::F32, WeightBytes::owned(&bytes))
        }
    };
    Ok(WeightData { ty: TensorType::new(dtype, ty.shape), bytes })
}

/// How many matrices are stacked in a tensor of this shape, and how many rows each has.
fn matrices(shape: &[usize]) -> (usize, usize) {
    match shape {
        [outer @ .., rows, _] => (outer.iter().product(), *rows),
        _ => (1, 1),
    }
}

/// The importances of the columns of a tensor, if they are known and its type has use for them.
fn importance<'a>(tensor: &Tensor, options: &'a QuantizeOptions) -> Result<Option<&'a [f32]>> {
    let row = tensor.shape.last().copied().unwrap_or(1);
    match (&options.imatrix, tensor.dtype.is_block()) {
        (Some(imatrix), true) => imatrix.importance(&tensor.name, matrices(&tensor.shape).0, row),
        _ => Ok(None),
    }
}

/// Whether a tensor is encoded without importances in a type that needs them.
pub(super) fn lacks_importance(
    weights: &NamedWeights,
    tensor: &Tensor,
    options: &QuantizeOptions,
) -> Result<bool> {
    let DType::Block(block) = tensor.dtype else { return Ok(false) };
    let encoded = weights.find_type(&tensor.name)?.is_some_and(|ty| ty.dtype != tensor.dtype);
    Ok(block.needs_importance() && encoded && importance(tensor, options)?.is_none())
}

/// The block type that a tensor is stored in, where it becomes another one: what the first has lost stays lost.
pub(super) fn lossy_before(weights: &NamedWeights, tensor: &Tensor) -> Result<Option<DType>> {
    let stored = weights.find_type(&tensor.name)?.map(|ty| ty.dtype);
    Ok(stored.filter(|stored| stored.is_block() && tensor.dtype.is_block() && *stored != tensor.dtype))
}

struct Rows<'a> {
    from: DType,
    to: DType,
    row: usize,
    rows_per_matrix: usize,
    /// Of the columns of all matrices.
    importance: Option<&'a [f32]>,
    threads: usize,
}

impl Rows<'_> {
    fn write(&self, source: &WeightBytes, sink: &mut TensorSink<'_>) -> Result<()> {
        if self.row == 0 || source.is_empty() {
            return Ok(());
        }
        let (Some(from), Some(to)) = (self.from.row_bytes(self.row), self.to.row_bytes(self.row)) else {
            bail!(Bug, "rows of {} elements cannot go from {} to {}", self.row, self.from, self.to);
        };
        let threads = self.threads;
        let rows_per_thread = (PIECE_BYTES / from).max(1);
        let mut out = Vec::new();
        for (i, piece) in source.chunks(rows_per_thread * threads * from).enumerate() {
            if self.from == self.to {
                sink.write(piece)?;
            } else {
                out.resize(piece.len() / from * to, 0u8);
                let parts = piece.chunks(rows_per_thread * from).zip(out.chunks_mut(rows_per_thread * to));
                std::thread::scope(|scope| {
                    let first = |part: usize| (i * threads + part) * rows_per_thread;
                    let work: Vec<_> = parts
                        .enumerate()
                        .map(|(n, (piece, out))| {
                            let first = first(n);
                            scope.spawn(move || self.convert(first, (piece, from), (out, to)))
                        })
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

    /// Converts rows of so many bytes each, whose first has this number within the tensor.
    fn convert(
        &self,
        first: usize,
        (piece, from): (&[u8], usize),
        (out, to): (&mut [u8], usize),
    ) -> Result<()> {
        let mut floats = vec![0f32; self.row];
        for (row, (source, out)) in (first..).zip(piece.chunks(from).zip(out.chunks_mut(to))) {
            decode_row(self.from, source, &mut floats)?;
            if let Some(bad) = floats.iter().find(|v| !v.is_finite()) {
                bail!(NonFinite, "it holds {bad}");
            }
            let start = row / self.rows_per_matrix.max(1) * self.row;
            let importance = self.importance.and_then(|columns| columns.get(start..start + self.row));
            encode_row(self.to, &floats, importance, out)?;
        }
        Ok(())
    }
}
