//! Normalisation of rows.
//!
//! Statistics are f32: 16 strided partial sums over the row, then a fixed tree; they depend on the row alone. A row whose sum or
//! squares f32 cannot hold is scaled by a power of two first, which every norm but for its epsilon is blind to.

mod l2_normalize;
mod layer_norm;
mod rms_norm;
mod softmax;
#[cfg(test)]
mod tests;

pub use l2_normalize::l2_normalize;
pub use layer_norm::layer_norm;
pub use rms_norm::rms_norm;
pub use softmax::softmax;

use rlx_ir::bail;

use super::Cpu;
use super::matmul::{Element, load_part, store_part};
use super::memory::Convert;
use super::scratch::with_scratch;
use crate::error::{Error, Result};
use crate::pool::chunks_pair;
use crate::simd::{Kernel, LANES, Simd};

/// A residual that is added before a norm, and where the sum is stored (rounded to the dtype: the norm is of the
/// stored sum).
#[derive(Debug)]
pub struct AddFirst<'a, T> {
    /// Added to x; of x's size.
    pub residual: &'a [T],
    /// Receives `x + residual`.
    pub sum: &'a mut [T],
}

/// What a norm does with one row that is already f32.
trait RowNorm: Copy + Sync {
    fn row<S: Simd>(&self, s: S, x: &mut [f32]);
}

/// Runs a norm over the rows of x.
fn rows<T: Element, N: RowNorm>(
    cpu: Cpu<'_>,
    what: &str,
    norm: N,
    cols: usize,
    x: &[T],
    add: Option<AddFirst<'_, T>>,
    out: &mut [T],
) -> Result<()> {
    let (residual, sum) = match add {
        Some(AddFirst { residual, sum }) => (Some(residual), sum),
        None => (None, &mut [][..]),
    };
    let fits = |len: usize| len == x.len();
    let added = residual.is_none_or(|r| fits(r.len()) && fits(sum.len()));
    if !fits(out.len()) || !added || (cols == 0 && !x.is_empty()) || !x.len().is_multiple_of(cols.max(1)) {
        bail!(InvalidArgument, "{what} of rows of {cols}: {} elements into {}", x.len(), out.len());
    }
    if x.is_empty() {
        return Ok(());
    }
    let each = (x.len() / cols).div_ceil(cpu.parts(x.len() * 2)) * cols;
    let sum_each = if residual.is_some() { each } else { 0 };
    chunks_pair(cpu.pool, (out, each), (sum, sum_each), |i, out, sum| {
        for (r, out) in out.chunks_mut(cols).enumerate() {
            let at = i * each + r * cols;
            let mut x = &x[at..at + cols];
            if let Some(residual) = residual {
                let sum = &mut sum[r * cols..][..cols];
                cpu.level.dispatch(Add { x, residual: &residual[at..at + cols], sum: &mut *sum });
                x = sum;
            }
            if let (Some(x), Some(out)) = (T::as_f32(x), T::as_f32_mut(out)) {
                out.copy_from_slice(x);
                cpu.level.dispatch(Row { norm, row: out });
                continue;
            }
            with_scratch(cols, |row: &mut [f32]| {
                cpu.level.dispatch(Convert { x, out: &mut *row });
                cpu.level.dispatch(Row { norm, row: &mut *row });
                cpu.level.dispatch(Convert { x: &*row, out });
            });
        }
    })
}

/// The sum with the residual, rounded.
struct Add<'a, T> {
    x: &'a [T],
    residual: &'a [T],
    sum: &'a mut [T],
}

impl<T: Element> Kernel for Add<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let both = self.x.chunks(LANES).zip(self.residual.chunks(LANES));
        for ((x, residual), sum) in both.zip(self.sum.chunks_mut(LANES)) {
            store_part(s, s.add(load_part(s, x), load_part(s, residual)), sum);
        }
    }
}

struct Row<'a, N> {
    norm: N,
    row: &'a mut [f32],
}

impl<N: RowNorm> Kernel for Row<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.norm.row(s, self.row);
    }
}

/// Checks a weight or bias of a norm.
fn check_parameter(what: &str, parameter: Option<&[f32]>, cols: usize) -> Result<()> {
    match parameter {
        Some(p) if p.len() != cols => {
            bail!(InvalidArgument, "{what}: a parameter of {} values for rows of {cols}", p.len())
        }
        _ => Ok(()),
    }
}

/// `update!(s, x, |at, v| y)`: each vector v of the row x, from element `at`, becomes y. A loop, not a closure: see
/// [`array_of`](crate::simd::array_of).
macro_rules! update {
    ($s:expr, $x:expr, |$at:pat_param, $v:ident| $y:expr) => {
        for (i, part) in $x.chunks_mut(LANES).enumerate() {
            let ($at, $v) = (i * LANES, load_part($s, part));
            let y = $y;
            store_part($s, y, part);
        }
    };
}
use update;

/// Up to 16 values of a parameter from `at`.
#[inline(always)]
fn parameter_at<S: Simd>(s: S, parameter: &[f32], at: usize) -> S::F {
    load_part(s, &parameter[at..parameter.len().min(at + LANES)])
}

/// What rows are scaled down by: then 2^31 squares of the largest numbers can be added up.
const DOWN: f32 = 1.0 / (1u128 << 80) as f32;
/// What rows are scaled up by.
const UP: f32 = (1u128 << 80) as f32;
/// Sums of squares below it may have lost bits of theirs.
const FEW_BITS: f32 = 1.0 / (1u128 << 90) as f32;

/// The sum of squares of a row, which is scaled first where f32 cannot hold it, and the scale. Small sums are left as they are
/// where `least`, which they are added to or compared with, hides what they lost.
#[inline(always)]
fn squares_in_range<S: Simd>(s: S, x: &mut [f32], least: f32) -> (f32, f32) {
    let sum = sum_of_squares(s, x);
    let scale = match sum {
        f32::INFINITY => DOWN,
        _ if sum < FEW_BITS && least < FEW_BITS => UP,
        _ => return (sum, 1.0),
    };
    scale_row(s, x, scale);
    (sum_of_squares(s, x), scale)
}

#[inline(always)]
fn scale_row<S: Simd>(s: S, x: &mut [f32], scale: f32) {
    let scale = s.splat(scale);
    update!(s, x, |_, x| s.mul(x, scale));
}

/// The sum of squares of a row.
#[inline(always)]
fn sum_of_squares<S: Simd>(s: S, x: &[f32]) -> f32 {
    let mut sum = s.zero();
    for x in x.chunks(LANES) {
        let x = load_part(s, x);
        sum = s.fma(x, x, sum);
    }
    s.sum(sum)
}
