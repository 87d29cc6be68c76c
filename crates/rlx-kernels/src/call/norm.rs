//! Calls of the norms and of softmax.

use rlx_ir::DType;
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::add_rms_norm::AddRmsNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::norm::softmax::Softmax;

use super::{Bound, Call, FLOATS, Work, check_dense, check_dtype};
use crate::args::{LayerNormArgs, RmsNormArgs, SoftmaxArgs};
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::{Joined, Layout};

pub(super) fn softmax(op: &Softmax, operands: &[Layout]) -> Result<Call> {
    let x = &operands[0];
    check_dtype(0, x, FLOATS)?;
    let rank = x.shape.len() as i64;
    let axis = (if op.axis < 0 { op.axis + rank } else { op.axis }) as usize;
    let around = |range: std::ops::Range<usize>| -> Result<(usize, usize)> {
        let joined = Joined::new(&x.shape[range.clone()], &[&x.strides[range]]);
        if joined.sizes.len() > 1 {
            rlx_ir::bail!(
                UnsupportedOnDevice,
                "the axes around the softmax of {x:?} do not lie at equal distances"
            );
        }
        let stride = joined.strides[0].first().copied().unwrap_or(0);
        Ok((joined.sizes.iter().product(), stride))
    };
    let (outer, x_outer) = around(0..axis)?;
    let (inner, x_inner) = around(axis + 1..x.shape.len())?;
    let args = SoftmaxArgs {
        width: index(x.shape[axis])?,
        inner: index(inner)?,
        x_outer: index(x_outer)?,
        x_inner: index(x_inner)?,
        x_step: index(x.strides[axis])?,
        scale: op.scale as f32,
    };
    let work = Work::PerRow { rows: outer * inner, width: x.shape[axis] };
    Call::new(&format!("softmax_{}", x.dtype), &args, 1, work)
}

/// The rows of `x`, and the dtypes in the kernel's name.
fn norm(operands: &[Layout], weight: usize) -> Result<(Work, usize, String)> {
    check_dtype(0, &operands[0], FLOATS)?;
    check_dtype(weight, &operands[weight], FLOATS)?;
    check_dense(weight, &operands[weight])?;
    let (rows, width, x_row) = operands[0].rows()?;
    Ok((Work::PerRow { rows, width }, x_row, format!("{}_{}", operands[0].dtype, operands[weight].dtype)))
}

fn check_bias(operands: &[Layout], weight: usize) -> Result<bool> {
    let Some(bias) = operands.get(weight + 1) else { return Ok(false) };
    check_dense(weight + 1, bias)?;
    let same: [DType; 1] = [operands[weight].dtype];
    check_dtype(weight + 1, bias, &same)?;
    Ok(true)
}

/// The operands, a missing bias, the results.
fn with_optional_bias(mut call: Call, operands: usize, bias_at: usize, has_bias: bool) -> Call {
    if !has_bias {
        call.bindings = (0..call.kernel.buffers.len())
            .map(|at| match at {
                _ if at < operands => Bound::Operand(at),
                _ if at == bias_at => Bound::Nothing,
                _ => Bound::Result(at - bias_at - 1),
            })
            .collect();
    }
    call
}

fn width_of(work: Work) -> Result<u32> {
    match work {
        Work::PerRow { width, .. } => index(width),
        _ => rlx_ir::bail!(Bug, "rows are shared out by rows"),
    }
}

pub(super) fn layer_norm(op: &LayerNorm, operands: &[Layout]) -> Result<Call> {
    let (work, x_row, types) = norm(operands, 1)?;
    let has_bias = check_bias(operands, 1)?;
    let args = LayerNormArgs {
        width: width_of(work)?,
        x_row: index(x_row)?,
        residual_row: 0,
        has_bias: has_bias.into(),
        eps: op.eps as f32,
    };
    let call = Call::new(&format!("layer_norm_{types}"), &args, operands.len(), work)?;
    Ok(with_optional_bias(call, operands.len(), 2, has_bias))
}

pub(super) fn add_layer_norm(op: &AddLayerNorm, operands: &[Layout]) -> Result<Call> {
    let (work, x_row, types) = norm(operands, 2)?;
    let has_bias = check_bias(operands, 2)?;
    let args = LayerNormArgs {
        width: width_of(work)?,
        x_row: index(x_row)?,
        residual_row: index(operands[1].rows()?.2)?,
        has_bias: has_bias.into(),
        eps: op.eps as f32,
    };
    let call = Call::new(&format!("add_layer_norm_{types}"), &args, operands.len(), work)?;
    Ok(with_optional_bias(call, operands.len(), 3, has_bias))
}

fn rms_args(op: &RmsNorm, work: Work, x_row: usize, residual_row: usize) -> Result<RmsNormArgs> {
    Ok(RmsNormArgs {
        width: width_of(work)?,
        x_row: index(x_row)?,
        residual_row: index(residual_row)?,
        eps: op.eps as f32,
        weight_offset: if op.unit_offset { 1.0 } else { 0.0 },
    })
}

pub(super) fn rms_norm(op: &RmsNorm, operands: &[Layout]) -> Result<Call> {
    let (work, x_row, types) = norm(operands, 1)?;
    Call::new(&format!("rms_norm_{types}"), &rms_args(op, work, x_row, 0)?, 2, work)
}

pub(super) fn add_rms_norm(op: &AddRmsNorm, operands: &[Layout]) -> Result<Call> {
    let (work, x_row, types) = norm(operands, 2)?;
    let args = rms_args(&op.norm, work, x_row, operands[1].rows()?.2)?;
    Call::new(&format!("add_rms_norm_{types}"), &args, 3, work)
}
