//! Copies between layouts.

use rlx_ir::bail;

use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::pool::chunks;

/// Copies an array of any strides to one without gaps: transpose, slice, broadcast (stride 0).
///
/// Shapes: `shape` and `strides` (elements) have one length; out holds the product of `shape`. Errors:
/// `InvalidArgument` where sizes do not agree.
pub fn copy_strided<T: Copy + Send + Sync>(
    cpu: Cpu<'_>,
    shape: &[usize],
    x: &[T],
    strides: &[usize],
    out: &mut [T],
) -> Result<()> {
    let elems = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    let last = shape
        .iter()
        .zip(strides)
        .try_fold(0usize, |at, (&d, &stride)| at.checked_add(d.saturating_sub(1).checked_mul(stride)?));
    if shape.len() != strides.len()
        || elems != Some(out.len())
        || (!out.is_empty() && last.is_none_or(|l| l >= x.len()))
    {
        bail!(
            InvalidArgument,
            "copy of {shape:?} with strides {strides:?}: {} elements into {}",
            x.len(),
            out.len()
        );
    }
    if out.is_empty() {
        return Ok(());
    }
    let (inner, stride) = (shape.last().copied().unwrap_or(1), strides.last().copied().unwrap_or(1));
    let outer = shape.len().saturating_sub(1);
    let each = (out.len() / inner).div_ceil(cpu.parts(out.len()));
    chunks(cpu.pool, out, each * inner, |i, out| {
        for (r, out) in out.chunks_mut(inner).enumerate() {
            let (mut row, mut at) = (i * each + r, 0);
            for (&d, &stride) in shape[..outer].iter().zip(strides).rev() {
                at += row % d * stride;
                row /= d;
            }
            match stride {
                0 => out.fill(x[at]),
                1 => out.copy_from_slice(&x[at..at + inner]),
                _ => out.iter_mut().zip(x[at..].iter().step_by(stride)).for_each(|(o, &x)| *o = x),
            }
        }
    })
}
