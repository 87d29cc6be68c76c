//! The element of one operand or of the other.

use bytemuck::Pod;
use rlx_ir::bail;

use super::{TILE, Truth, each_tile};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::scratch::with_scratch;
use crate::kernels::strided::{Axes, Strided};
use crate::simd::{Kernel, Simd};

/// `out = condition ? a : b` of operands of any strides, which are broadcast by strides of 0.
///
/// Shapes: `shape` is the result's, for which each operand has strides. Dtypes: any, as bits. Errors: `InvalidArgument` where
/// sizes do not agree.
pub fn select<T: Pod + Send + Sync>(
    cpu: Cpu<'_>,
    shape: &[usize],
    condition: Strided<'_, Truth>,
    [a, b]: [Strided<'_, T>; 2],
    out: &mut [T],
) -> Result<()> {
    let operands =
        [(condition.data.len(), condition.strides), (a.data.len(), a.strides), (b.data.len(), b.strides)];
    let axes = Axes::of("select", shape, operands)?;
    if axes.elems() != out.len() {
        bail!(InvalidArgument, "select of {shape:?} into {} elements", out.len());
    }
    each_tile(cpu, 2, out, |start, out| {
        with_scratch(TILE, |conditions: &mut [Truth]| {
            with_scratch(2 * TILE, |scratch: &mut [T]| {
                let (x, y) = scratch.split_at_mut(TILE);
                let condition = axes.in_order(0, condition.data, start, &mut conditions[..out.len()]);
                let a = axes.in_order(1, a.data, start, &mut x[..out.len()]);
                let b = axes.in_order(2, b.data, start, &mut y[..out.len()]);
                cpu.level.dispatch(Apply { condition, a, b, out });
            });
        });
    })
}

/// `out[i] = condition[i] ? a[i] : b[i]` of slices of one length, on the calling thread.
pub(crate) fn select_tile(cpu: Cpu<'_>, condition: &[Truth], [a, b]: [&[f32]; 2], out: &mut [f32]) {
    cpu.level.dispatch(Apply { condition, a, b, out });
}

struct Apply<'a, T> {
    condition: &'a [Truth],
    a: &'a [T],
    b: &'a [T],
    out: &'a mut [T],
}

impl<T: Copy> Kernel for Apply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let sides = self.a.iter().zip(self.b);
        for ((out, condition), (a, b)) in self.out.iter_mut().zip(self.condition).zip(sides) {
            *out = if condition.get() { *a } else { *b };
        }
    }
}
