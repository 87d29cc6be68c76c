//! Token ids and their mask.

use std::ops::Range;
use std::path::Path;

use rlx_ir::{DType, Tensor, bail};
use rlx_runtime::WeightSource;
use rlx_runtime::weights::{SafetensorsFile, SafetensorsWeights};

use crate::{Error, Result};

const IDS: &str = "input_ids";
const MASK: &str = "attention_mask";
const TYPES: &str = "token_type_ids";
/// The tensors that are read.
const READ: [&str; 3] = [IDS, MASK, TYPES];
/// What other implementations take as inputs that change the result.
const REFUSED: [&str; 9] = [
    "position_ids",
    "inputs_embeds",
    "head_mask",
    "attention_bias",
    "cache_position",
    "past_key_values",
    "decoder_input_ids",
    "encoder_hidden_states",
    "encoder_attention_mask",
];

/// Token ids [B, S] with an optional mask of the same shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardInput {
    ids: Vec<i64>,
    mask: Option<Vec<bool>>,
    rows: usize,
    columns: usize,
    unread: Vec<String>,
}

impl ForwardInput {
    /// `ids` [rows, columns] row-major, and `mask`, which is true where a token counts.
    ///
    /// # Errors
    /// `InvalidArgument` where the numbers of values do not fit.
    pub fn new(ids: Vec<i64>, mask: Option<Vec<bool>>, rows: usize, columns: usize) -> Result<Self> {
        if rows.checked_mul(columns) != Some(ids.len()) {
            bail!(InvalidArgument, "input_ids [{rows}, {columns}] with {} values", ids.len());
        }
        if let Some(mask) = &mask
            && mask.len() != ids.len()
        {
            bail!(InvalidArgument, "attention_mask has {} values, input_ids {}", mask.len(), ids.len());
        }
        Ok(Self { ids, mask, rows, columns, unread: Vec::new() })
    }

    /// Reads `input_ids` [B, S], i64 or i32, and, if there, `attention_mask` of the same shape, 0 or 1 in any integer or
    /// boolean dtype, of a `.safetensors` file. `token_type_ids` may be there where all are 0: every token is of the first type. Tensors that are no inputs (the
    /// expected outputs, say) are left alone: [`unread`](Self::unread) names them.
    ///
    /// # Errors
    /// `NotFound`, `Io`, `InvalidFile`; `InvalidArgument` naming the tensor whose dtype, shape or values do not fit, or that other
    /// implementations take as an input (`position_ids`).
    pub fn open(path: &Path) -> Result<Self> {
        let source = SafetensorsWeights::new(vec![SafetensorsFile::open(path)?]);
        let read = |name: &str| -> Result<(Vec<i64>, Vec<usize>)> {
            let data = source.weight(name)?;
            let (dtype, shape) = (data.ty.dtype, data.ty.shape.clone());
            let is_index = matches!(dtype, DType::I64 | DType::I32);
            // What only says yes or no fits any integer.
            if !(is_index || name != IDS && (dtype.is_int() || dtype == DType::Bool)) {
                bail!(InvalidArgument, "{}: {name} is {}, expected i64 or i32", path.display(), data.ty);
            }
            if shape.len() != 2 {
                bail!(InvalidArgument, "{}: {name} is {}, expected [B, S]", path.display(), data.ty);
            }
            Ok((Tensor::from_bytes(data.ty, data.bytes.to_vec())?.to_i64()?, shape))
        };
        let names: Vec<&str> =
            source.files().iter().flat_map(SafetensorsFile::tensors).map(|(name, ..)| name).collect();
        if let Some(other) = names.iter().find(|name| REFUSED.contains(name)) {
            bail!(
                InvalidArgument,
                "{}: {other:?} is not supported as an input: what goes into a network is {}",
                path.display(),
                READ.join(", ")
            );
        }
        let unread =
            names.iter().filter(|name| !READ.contains(name)).map(|name| (*name).to_owned()).collect();
        let (ids, shape) = read(IDS)?;
        let like_ids = |name: &str| -> Result<Option<Vec<i64>>> {
            if !source.contains(name) {
                return Ok(None);
            }
            match read(name)? {
                (values, found) if found == shape => Ok(Some(values)),
                (_, found) => {
                    bail!(InvalidArgument, "{}: {name} is {found:?}, {IDS} {shape:?}", path.display())
                }
            }
        };
        let mask = like_ids(MASK)?;
        if let Some(other) = mask.iter().flatten().find(|kept| !matches!(kept, 0 | 1)) {
            bail!(
                InvalidArgument,
                "{}: {MASK} holds {other}, expected 1 where a token counts and 0 where not",
                path.display()
            );
        }
        if let Some(other) = like_ids(TYPES)?.iter().flatten().find(|kind| **kind != 0) {
            bail!(
                InvalidArgument,
                "{}: {TYPES} holds {other}, but every token is taken to be of the first type, 0",
                path.display()
            );
        }
        let mask = mask.map(|values| values.into_iter().map(|v| v == 1).collect());
        let input = Self::new(ids, mask, shape[0], shape[1]).map_err(|e| e.context(path.display()))?;
        Ok(Self { unread, ..input })
    }

    /// The tensors of the file that have no effect.
    pub fn unread(&self) -> &[String] {
        &self.unread
    }

    /// B.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows that have columns: no work grows with the number of rows that hold nothing.
    pub(crate) fn filled_rows(&self) -> Range<usize> {
        0..if self.columns == 0 { 0 } else { self.rows }
    }

    /// S.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Where tokens count; `None` where all do.
    pub(crate) fn mask(&self) -> Option<&[bool]> {
        self.mask.as_deref()
    }

    /// All ids of a row, and whether each counts.
    pub(crate) fn row(&self, row: usize) -> impl Iterator<Item = (i64, bool)> + '_ {
        let range = row * self.columns..(row + 1) * self.columns;
        range.map(|at| (self.ids[at], self.mask.as_ref().is_none_or(|m| m[at])))
    }

    /// All ids, 0 where masked.
    ///
    /// # Errors
    /// As [`kept`](Self::kept).
    pub(crate) fn ids_below(&self, vocab_size: usize) -> Result<Vec<u32>> {
        let mut out = vec![0; self.ids.len()];
        for row in self.filled_rows() {
            for (id, column) in self.kept(row, vocab_size)? {
                out[row * self.columns + column] = id.unsigned_abs();
            }
        }
        Ok(out)
    }

    /// The tokens of `row` that count, as id and column.
    ///
    /// # Errors
    /// `InvalidArgument` naming row and column of an id that is not below `vocab_size`.
    pub(crate) fn kept(&self, row: usize, vocab_size: usize) -> Result<Vec<(i32, usize)>> {
        let range = row * self.columns..(row + 1) * self.columns;
        let mut out = Vec::with_capacity(self.columns);
        for (column, at) in range.enumerate() {
            if self.mask.as_ref().is_some_and(|m| !m[at]) {
                continue;
            }
            match i32::try_from(self.ids[at]) {
                Ok(id) if id >= 0 && (id as usize) < vocab_size => out.push((id, column)),
                _ => bail!(
                    InvalidArgument,
                    "input_ids[{row}, {column}] is {}, but the model has {vocab_size} tokens",
                    self.ids[at]
                ),
            }
        }
        Ok(out)
    }
}
