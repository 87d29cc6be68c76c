//! Calls of `embedding`, and of sums of embeddings with their norm in one.

use rlx_ir::DType;
use rlx_ir::ops::embedding::embedding::Embedding;

use super::{Bound, Call, FLOATS, Work, check_dense, check_dtype};
use crate::args::{Args, EmbeddingArgs, EmbeddingLayerNormArgs, MAX_EMBEDDINGS};
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::Layout;
use crate::manifest::find;

const IDS: &[DType] = &[DType::I32, DType::I64, DType::U32];

pub(super) fn embedding(op: &Embedding, operands: &[Layout]) -> Result<Call> {
    let (table, ids) = (&operands[0], &operands[1]);
    check_dtype(0, table, FLOATS)?;
    check_dtype(1, ids, IDS)?;
    check_dense(0, table)?;
    check_dense(1, ids)?;
    if !FLOATS.contains(&op.dtype) {
        rlx_ir::bail!(UnsupportedOnDevice, "a result of {}", op.dtype);
    }
    let (rows, width) = (table.shape[0], table.shape[1]);
    let elems = ids.elems() * width;
    let args = EmbeddingArgs {
        elems: index(elems)?,
        rows: index(rows)?,
        width: index(width)?,
        scale: op.scale as f32,
    };
    let name = format!("embedding_{}_{}_{}", table.dtype, ids.dtype, op.dtype);
    Call::new(&name, &args, 2, Work::PerElement(elems))
}

/// An embedding that is part of a sum, by places among the operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EmbeddingPart {
    /// The table `[V, H]`; without ids one row, `[1, H]` or `[H]`.
    pub table: usize,
    /// The id of each token; without them every token has the table's one row.
    pub ids: Option<usize>,
    /// The factor of the values.
    pub scale: f64,
}

/// A sum of embeddings and its layer norm, by places among the operands.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbeddingLayerNorm {
    /// What is summed up, in this order; the first has ids.
    pub parts: Vec<EmbeddingPart>,
    /// The weight `[H]` of the norm.
    pub weight: usize,
    /// Its bias `[H]`, of the weight's dtype.
    pub bias: Option<usize>,
    /// What is added to the variance.
    pub eps: f64,
    /// The dtype of the result `[.., H]`.
    pub dtype: DType,
}

/// Embeddings, their sum in f32, and its layer norm in one dispatch, as models of the BERT kind begin.
///
/// # Errors
/// `UnsupportedOnDevice` where no kernel does it, with the reason.
pub fn embedding_layer_norm(block: &EmbeddingLayerNorm, operands: &[Layout]) -> Result<Call> {
    let Some(first_ids) = block.parts.first().and_then(|p| p.ids) else {
        rlx_ir::bail!(UnsupportedOnDevice, "a sum of embeddings that does not begin with one by ids");
    };
    if block.parts.len() > MAX_EMBEDDINGS {
        rlx_ir::bail!(
            UnsupportedOnDevice,
            "a sum of {} embeddings, at most {MAX_EMBEDDINGS} fit",
            block.parts.len()
        );
    }
    let (table, ids, weight) =
        (&operands[block.parts[0].table], &operands[first_ids], &operands[block.weight]);
    check_dtype(block.parts[0].table, table, FLOATS)?;
    check_dtype(first_ids, ids, IDS)?;
    check_dtype(block.weight, weight, FLOATS)?;
    check_dense(block.weight, weight)?;
    if let Some(at) = block.bias {
        check_dtype(at, &operands[at], &[weight.dtype])?;
        check_dense(at, &operands[at])?;
    }
    if !FLOATS.contains(&block.dtype) {
        rlx_ir::bail!(UnsupportedOnDevice, "a result of {}", block.dtype);
    }
    let (tokens, width) = (ids.elems(), weight.elems());
    let mut args = EmbeddingLayerNormArgs {
        width: index(width)?,
        parts: index(block.parts.len())?,
        has_bias: block.bias.is_some().into(),
        eps: block.eps as f32,
        ..EmbeddingLayerNormArgs::default()
    };
    let mut bindings = Vec::new();
    // Those after the first share a type: that of the first, or f32 beside f16.
    let others = block.parts.get(1).map_or(table.dtype, |part| operands[part.table].dtype);
    let fit: &[DType] = if table.dtype == DType::F16 { FLOATS } else { &[DType::F32] };
    for (at, part) in block.parts.iter().enumerate() {
        let own = &operands[part.table];
        if at > 0 {
            check_dtype(part.table, own, fit)?;
            check_dtype(part.table, own, &[others])?;
        }
        check_dense(part.table, own)?;
        if own.shape.last() != Some(&width) || part.ids.is_none() && own.elems() != width {
            rlx_ir::bail!(Bug, "an embedding of {own:?} for rows of {width}");
        }
        if let Some(at) = part.ids {
            check_dtype(at, &operands[at], &[ids.dtype])?;
            check_dense(at, &operands[at])?;
            if operands[at].elems() != tokens {
                rlx_ir::bail!(Bug, "{} ids for {tokens} tokens", operands[at].elems());
            }
        }
        args.rows[at] = index(own.elems() / width.max(1))?;
        args.by_ids[at] = part.ids.is_some().into();
        args.scales[at] = part.scale as f32;
        bindings.extend([Bound::Operand(part.table), part.ids.map_or(Bound::Nothing, Bound::Operand)]);
    }
    bindings.resize(2 * MAX_EMBEDDINGS, Bound::Nothing);
    let bias = block.bias.map_or(Bound::Nothing, Bound::Operand);
    bindings.extend([Bound::Operand(block.weight), bias, Bound::Result(0)]);
    let name = format!(
        "embedding_layer_norm_{}_{others}_{}_{}_{}",
        table.dtype, ids.dtype, weight.dtype, block.dtype
    );
    let work = Work::PerRow { rows: tokens, width };
    Ok(Call { kernel: find(&name)?, args: args.bytes().to_vec(), bindings, work })
}
