//! Copies between layouts.

use rlx_ir::bail;

use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::strided::{Axes, Strided};
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
    let axes = Axes::new("copy", shape, [Strided { data: x, strides }])?;
    if axes.elems() != out.len() {
        bail!(InvalidArgument, "copy of {shape:?} into {} elements", out.len());
    }
    let each = out.len().div_ceil(cpu.parts(out.len())).max(1);
    chunks(cpu.pool, out, each, |i, out| axes.read(0, x, i * each, out))
}
