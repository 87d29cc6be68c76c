//! Comparisons of two elements.

use bytemuck::Pod;
use rlx_ir::bail;

use super::binary::widened;
use super::{TILE, Truth, each_tile};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::matmul::Element;
use crate::kernels::scratch::with_scratch;
use crate::kernels::strided::{Axes, Strided};
use crate::simd::{Kernel, Simd};

/// A comparison; with NaN only `Ne` is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

fn axes<T: Copy>(
    op: Comparison,
    shape: &[usize],
    operands: [Strided<'_, T>; 2],
    out: &[Truth],
) -> Result<Axes<2>> {
    let axes = Axes::new("a comparison", shape, operands)?;
    if axes.elems() != out.len() {
        bail!(InvalidArgument, "{op:?} of {shape:?} into {} elements", out.len());
    }
    Ok(axes)
}

/// `out = op(a, b)` of operands of any strides, which are broadcast by strides of 0.
///
/// Shapes: `shape` is the result's, for which each operand has strides. Dtypes: what compares as Rust's numbers do: f32, f64,
/// integers, `bool`. Errors: `InvalidArgument` where sizes do not agree.
pub fn compare<T: PartialOrd + Pod + Send + Sync>(
    cpu: Cpu<'_>,
    op: Comparison,
    shape: &[usize],
    [a, b]: [Strided<'_, T>; 2],
    out: &mut [Truth],
) -> Result<()> {
    let axes = axes(op, shape, [a, b], out)?;
    each_tile(cpu, 2, out, |start, out| {
        with_scratch(2 * TILE, |scratch: &mut [T]| {
            let (x, y) = scratch.split_at_mut(TILE);
            let a = axes.in_order(0, a.data, start, &mut x[..out.len()]);
            let b = axes.in_order(1, b.data, start, &mut y[..out.len()]);
            cpu.level.dispatch(Apply { op, a, b, out });
        });
    })
}

/// [`compare`] of f16 and of bf16, as f32.
pub fn compare_floats<T: Element>(
    cpu: Cpu<'_>,
    op: Comparison,
    shape: &[usize],
    [a, b]: [Strided<'_, T>; 2],
    out: &mut [Truth],
) -> Result<()> {
    let axes = axes(op, shape, [a, b], out)?;
    each_tile(cpu, 4, out, |start, out| {
        with_scratch(2 * TILE, |scratch: &mut [f32]| {
            let (x, y) = scratch.split_at_mut(TILE);
            let a = widened(cpu, &axes, 0, a.data, start, &mut x[..out.len()]);
            let b = widened(cpu, &axes, 1, b.data, start, &mut y[..out.len()]);
            cpu.level.dispatch(Apply { op, a, b, out });
        });
    })
}

/// `out[i] = op(a[i], b[i])` of slices of one length, on the calling thread.
pub(crate) fn compare_tile(cpu: Cpu<'_>, op: Comparison, [a, b]: [&[f32]; 2], out: &mut [Truth]) {
    cpu.level.dispatch(Apply { op, a, b, out });
}

struct Apply<'a, T> {
    op: Comparison,
    a: &'a [T],
    b: &'a [T],
    out: &'a mut [Truth],
}

impl<T: PartialOrd + Copy> Kernel for Apply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        // One loop for each comparison, so that the choice is outside of it; the compiler makes vectors of the level.
        macro_rules! each {
            ($($name:ident $op:tt)*) => {
                match self.op {
                    $(Comparison::$name => {
                        for ((out, a), b) in self.out.iter_mut().zip(self.a).zip(self.b) {
                            *out = Truth::from(a $op b);
                        }
                    })*
                }
            };
        }
        each!(Eq == Ne != Lt < Le <= Gt > Ge >=);
    }
}
