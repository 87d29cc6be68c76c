//! Functions of single elements over whole slices.
//!
//! All floats; f16 and bf16 are computed in f32 and rounded once. [`arithmetic`] is for integers and f64.

mod arithmetic;
mod binary;
mod cast;
#[cfg(test)]
mod tests;
mod unary;

pub use arithmetic::{Arithmetic, Number, arithmetic};
pub use binary::{Binary, binary, binary_strided, gated};
pub use cast::{Scalar, cast, cast_floats};
pub use unary::{Unary, unary};

use super::matmul::Element;
use super::memory::Convert;
use super::scratch::with_scratch;
use crate::simd::SimdLevel;

/// Elements of one task.
pub(crate) const TASK_ELEMS: usize = 1 << 14;

/// Elements that are converted together.
const TILE: usize = 1024;

/// Runs a function of f32 on elements of another dtype, tile by tile: so functions are compiled for f32 only.
fn in_f32<T: Element, const N: usize>(
    level: SimdLevel,
    x: [&[T]; N],
    out: &mut [T],
    f: impl Fn([&[f32]; N], &mut [f32]),
) {
    with_scratch((N + 1) * TILE, |scratch: &mut [f32]| {
        let (result, operands) = scratch.split_at_mut(TILE);
        for (t, out) in out.chunks_mut(TILE).enumerate() {
            for (x, wide) in x.iter().zip(operands.chunks_exact_mut(TILE)) {
                level.dispatch(Convert { x: &x[t * TILE..][..out.len()], out: &mut wide[..out.len()] });
            }
            let wide = std::array::from_fn(|i| &operands[i * TILE..][..out.len()]);
            f(wide, &mut result[..out.len()]);
            level.dispatch(Convert { x: &result[..out.len()], out });
        }
    });
}
