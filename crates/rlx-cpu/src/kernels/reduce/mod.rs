//! Reductions over axes.
//!
//! [`reduce`] is for f32, f16 and bf16, which are computed in f32 and rounded once; [`reduce_exact`] for integers and f64: both
//! over one axis of `[outer, axis, inner]`. [`reduce_axes`] reduces any axes of any of these.
//!
//! Where `inner` is 1 the order is 16 strided partial results, then a fixed tree; else the axis in ascending order. Of several
//! axes the last come first. The order depends on the sizes alone.

mod axes;
mod exact;
#[cfg(test)]
mod tests;

pub use axes::{Reducible, reduce_axes};
pub use exact::{Folded, reduce_exact};

use rlx_ir::bail;

use super::Cpu;
use super::matmul::{Element, load_part, store_part};
use super::memory::Convert;
use super::scratch::with_scratch;
use crate::error::{Error, Result};
use crate::pool::chunks;
use crate::simd::{Kernel, LANES, Simd, reduce_max, reduce_min, reduce_prod, reduce_sum};

/// How elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Σ x; 0 of nothing.
    Sum,
    /// Σ x / n, finite where all x are; NaN of nothing.
    Mean,
    /// The largest, NaN where any is NaN; the lowest value of the dtype, or negative infinity, of nothing.
    Max,
    /// The smallest, NaN where any is NaN; the highest value of the dtype, or infinity, of nothing.
    Min,
    /// Π x; 1 of nothing.
    Prod,
}

/// `out[o, i] = reduce(x[o, :, i])`.
///
/// Shapes: x `[outer, axis, inner]`, out `[outer, inner]`. Dtypes: f32, f16, bf16, each. Errors: `InvalidArgument` where lengths do
/// not agree.
pub fn reduce<X: Element, Y: Element>(
    cpu: Cpu<'_>,
    reduction: Reduction,
    sizes: [usize; 3],
    x: &[X],
    out: &mut [Y],
) -> Result<()> {
    let [_, axis, inner] = sizes;
    each_line(cpu, sizes, x, out, |x, out| match X::as_f32(x) {
        _ if inner > 1 => cpu.level.dispatch(Columns { reduction, axis, x, out }),
        Some(x) => line(cpu, reduction, x, out),
        None => with_scratch(axis, |wide: &mut [f32]| {
            cpu.level.dispatch(Convert { x, out: &mut *wide });
            line(cpu, reduction, wide, out);
        }),
    })
}

/// Calls `run` for each `x[o]` and `out[o]`, in parallel.
fn each_line<X: Sync, Y: Send>(
    cpu: Cpu<'_>,
    [outer, axis, inner]: [usize; 3],
    x: &[X],
    out: &mut [Y],
    run: impl Fn(&[X], &mut [Y]) + Sync,
) -> Result<()> {
    let result = outer.checked_mul(inner);
    if result != Some(out.len()) || result.and_then(|n| n.checked_mul(axis)) != Some(x.len()) {
        let (x, out) = (x.len(), out.len());
        bail!(InvalidArgument, "reduce of [{outer}, {axis}, {inner}]: {x} elements into {out}");
    }
    if out.is_empty() {
        return Ok(());
    }
    let each = outer.div_ceil(cpu.parts(x.len())) * inner;
    chunks(cpu.pool, out, each, |i, out| {
        let first = i * each / inner;
        for (o, out) in out.chunks_mut(inner).enumerate() {
            run(&x[(first + o) * axis * inner..][..axis * inner], out);
        }
    })
}

fn line<Y: Element>(cpu: Cpu<'_>, reduction: Reduction, x: &[f32], out: &mut [Y]) {
    let value = cpu.level.dispatch(Line { reduction, x });
    match Y::as_f32_mut(out) {
        Some(out) => out[0] = value,
        None => cpu.level.dispatch(Convert { x: &[value], out }),
    }
}

/// The mean of values whose sum is beyond f32 (or of infinities, or NaN).
#[cold]
pub(super) fn wide_mean(x: impl Iterator<Item = f32>) -> f32 {
    let (mut sum, mut count) = (0.0, 0.0);
    for x in x {
        sum += f64::from(x);
        count += 1.0;
    }
    (sum / count) as f32
}

struct Line<'a> {
    reduction: Reduction,
    x: &'a [f32],
}

impl Kernel for Line<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        match self.reduction {
            Reduction::Sum => reduce_sum(s, self.x),
            Reduction::Mean => match reduce_sum(s, self.x) / self.x.len() as f32 {
                mean if mean.is_finite() => mean,
                _ => wide_mean(self.x.iter().copied()),
            },
            Reduction::Max => reduce_max(s, self.x),
            Reduction::Min => reduce_min(s, self.x),
            Reduction::Prod => reduce_prod(s, self.x),
        }
    }
}

/// One element as f32.
#[inline(always)]
pub(super) fn one<S: Simd, T: Element>(s: S, x: &T) -> f32 {
    let mut lanes = [0f32; LANES];
    s.store(load_part(s, std::slice::from_ref(x)), &mut lanes);
    lanes[0]
}

struct Columns<'a, X, Y> {
    reduction: Reduction,
    axis: usize,
    x: &'a [X],
    out: &'a mut [Y],
}

impl<X: Element, Y: Element> Kernel for Columns<'_, X, Y> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (count, inner) = (self.axis as f32, self.out.len());
        // A loop, not a closure, for each: see `array_of`.
        macro_rules! columns {
            ($unit:expr, $op:ident) => {
                for (i, out) in self.out.chunks_mut(LANES).enumerate() {
                    let mut sum = s.splat($unit);
                    for row in self.x.chunks_exact(inner) {
                        let row = &row[i * LANES..][..out.len()];
                        sum = s.$op(sum, load_part(s, row));
                    }
                    if self.reduction == Reduction::Mean {
                        let mut mean = [0f32; LANES];
                        s.store(s.div(sum, s.splat(count)), &mut mean);
                        for (c, mean) in mean.iter_mut().enumerate().take(out.len()) {
                            if !mean.is_finite() {
                                let column = self.x.iter().skip(i * LANES + c).step_by(inner);
                                *mean = wide_mean(column.map(|x| one(s, x)));
                            }
                        }
                        sum = s.load(&mean);
                    }
                    store_part(s, sum, out);
                }
            };
        }
        match self.reduction {
            Reduction::Sum | Reduction::Mean => columns!(0.0, add),
            Reduction::Max => columns!(f32::NEG_INFINITY, max),
            Reduction::Min => columns!(f32::INFINITY, min),
            Reduction::Prod => columns!(1.0, mul),
        }
    }
}
