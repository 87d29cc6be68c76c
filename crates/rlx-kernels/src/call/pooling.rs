//! Calls of `pool` and `l2_normalize`, and of both in one.

use rlx_ir::DType;
use rlx_ir::ops::pooling::l2_normalize::L2Normalize;
use rlx_ir::ops::pooling::pool::Pool;

use super::{Call, FLOATS, Work, check_dense, check_dtype};
use crate::args::{L2NormalizeArgs, PoolArgs};
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::Layout;

pub(super) fn l2_normalize(op: &L2Normalize, operands: &[Layout]) -> Result<Call> {
    let x = &operands[0];
    check_dtype(0, x, FLOATS)?;
    let (rows, width, x_row) = x.rows()?;
    let args = L2NormalizeArgs { width: index(width)?, x_row: index(x_row)?, eps: op.eps as f32 };
    Call::new(&format!("l2_normalize_{}", x.dtype), &args, 1, Work::PerRow { rows, width })
}

fn pooled(function: &str, op: &Pool, eps: f64, operands: &[Layout]) -> Result<Call> {
    let (x, starts) = (&operands[0], &operands[1]);
    check_dtype(0, x, FLOATS)?;
    check_dtype(1, starts, &[DType::I32])?;
    check_dense(1, starts)?;
    let (tokens, width, x_row) = x.rows()?;
    let Some(rows) = starts.elems().checked_sub(1) else {
        rlx_ir::bail!(Bug, "{function} without starts");
    };
    let args =
        PoolArgs { tokens: index(tokens)?, width: index(width)?, x_row: index(x_row)?, eps: eps as f32 };
    let name = format!("{function}_{}_{}", op.mode.name(), x.dtype);
    Call::new(&name, &args, 2, Work::PerRow { rows, width })
}

pub(super) fn pool(op: &Pool, operands: &[Layout]) -> Result<Call> {
    pooled("pool", op, 0.0, operands)
}

/// `pool`, then `l2_normalize` of its rounded result, in one dispatch.
///
/// # Errors
/// `UnsupportedOnDevice` where no kernel does it, with the reason.
pub fn pool_l2_normalize(pool: &Pool, norm: &L2Normalize, operands: &[Layout]) -> Result<Call> {
    pooled("pool_l2_normalize", pool, norm.eps, operands)
}
