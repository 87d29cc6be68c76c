//! The call of `embedding`.

use rlx_ir::DType;
use rlx_ir::ops::embedding::embedding::Embedding;

use super::{Call, FLOATS, Work, check_dense, check_dtype};
use crate::args::EmbeddingArgs;
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::Layout;

pub(super) fn embedding(op: &Embedding, operands: &[Layout]) -> Result<Call> {
    let (table, ids) = (&operands[0], &operands[1]);
    check_dtype(0, table, FLOATS)?;
    check_dtype(1, ids, &[DType::I32, DType::I64, DType::U32])?;
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
