//! Reductions over one axis of `[outer, axis, inner]`.
//!
//! Where `inner` is 1 the order is 16 strided partial results, then a fixed tree; else the axis in ascending order. It
//! depends on the sizes alone.

#[cfg(test)]
mod tests;

use rlx_ir::bail;

use super::Cpu;
use super::matmul::{load_part, store_part};
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
    /// The largest, NaN where any is NaN; negative infinity of nothing.
    Max,
    /// The smallest, NaN where any is NaN; infinity of nothing.
    Min,
    /// Π x; 1 of nothing.
    Prod,
}

/// `out[o, i] = reduce(x[o, :, i])`, all f32.
///
/// Shapes: x `[outer, axis, inner]`, out `[outer, inner]`. Errors: `InvalidArgument` where lengths do not agree.
pub fn reduce(
    cpu: Cpu<'_>,
    reduction: Reduction,
    [outer, axis, inner]: [usize; 3],
    x: &[f32],
    out: &mut [f32],
) -> Result<()> {
    check("reduce", [outer, axis, inner], x.len(), out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let each = outer.div_ceil(cpu.parts(x.len())) * inner;
    chunks(cpu.pool, out, each, |i, out| {
        let first = i * each / inner;
        for (o, out) in out.chunks_mut(inner).enumerate() {
            let x = &x[(first + o) * axis * inner..][..axis * inner];
            cpu.level.dispatch(Reduce { reduction, axis, x, out });
        }
    })
}

fn check(what: &str, [outer, axis, inner]: [usize; 3], x: usize, out: usize) -> Result<()> {
    let result = outer.checked_mul(inner);
    if result != Some(out) || result.and_then(|n| n.checked_mul(axis)) != Some(x) {
        bail!(InvalidArgument, "{what} of [{outer}, {axis}, {inner}]: {x} elements into {out}");
    }
    Ok(())
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

struct Reduce<'a> {
    reduction: Reduction,
    axis: usize,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Reduce<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let count = self.axis as f32;
        if let [out] = self.out {
            *out = match self.reduction {
                Reduction::Sum => reduce_sum(s, self.x),
                Reduction::Mean => match reduce_sum(s, self.x) / count {
                    mean if mean.is_finite() => mean,
                    _ => wide_mean(self.x.iter().copied()),
                },
                Reduction::Max => reduce_max(s, self.x),
                Reduction::Min => reduce_min(s, self.x),
                Reduction::Prod => reduce_prod(s, self.x),
            };
            return;
        }
        let inner = self.out.len();
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
                        sum = s.div(sum, s.splat(count));
                    }
                    store_part(s, sum, out);
                    if self.reduction == Reduction::Mean {
                        for (c, y) in out.iter_mut().enumerate().filter(|(_, y)| !y.is_finite()) {
                            *y = wide_mean(self.x.iter().skip(i * LANES + c).step_by(inner).copied());
                        }
                    }
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

/// The position of the largest element of each row: the first of equal ones; the first NaN where there is one.
///
/// Shapes: x `[rows, cols]`, out `[rows]`. Errors: `InvalidArgument` where lengths do not agree or `cols` is 0 or
/// above the range of i32.
pub fn argmax(cpu: Cpu<'_>, cols: usize, x: &[f32], out: &mut [i32]) -> Result<()> {
    check("argmax", [out.len(), cols, 1], x.len(), out.len())?;
    if cols == 0 || i32::try_from(cols).is_err() {
        bail!(InvalidArgument, "argmax of rows of {cols} elements");
    }
    let each = out.len().div_ceil(cpu.parts(x.len())).max(1);
    chunks(cpu.pool, out, each, |i, out| {
        for (r, out) in out.iter_mut().enumerate() {
            let x = &x[(i * each + r) * cols..][..cols];
            let max = cpu.level.dispatch(Max(x));
            let found = x.iter().position(|v| if max.is_nan() { v.is_nan() } else { *v == max });
            *out = found.unwrap_or(0) as i32;
        }
    })
}

struct Max<'a>(&'a [f32]);

impl Kernel for Max<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> f32 {
        reduce_max(s, self.0)
    }
}
