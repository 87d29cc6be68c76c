//! Functions of single elements over whole slices.
//!
//! [`unary`] and [`binary`] are for f32, f16 and bf16: these are computed in f32 and rounded once. [`unary_exact`] and
//! [`arithmetic`] are for integers and f64.

mod arithmetic;
mod binary;
mod cast;
mod compare;
mod select;
#[cfg(test)]
mod tests;
mod truth;
mod unary;
mod unary_exact;

pub use arithmetic::{Arithmetic, Number, arithmetic};
pub use binary::{Binary, binary, binary_strided, gated};
pub use cast::{Scalar, Wide, cast, cast_floats};
pub(crate) use compare::compare_tile;
pub use compare::{Comparison, compare, compare_floats};
pub use select::select;
pub(crate) use select::select_tile;
pub use truth::Truth;
pub use unary::{Unary, unary};
pub use unary_exact::{Exact, logical_not, unary_exact};

use super::Cpu;
use super::matmul::Element;
use super::memory::Convert;
use super::scratch::with_scratch;
use crate::error::Result;
use crate::pool::chunks;
use crate::simd::SimdLevel;

/// Elements of one task.
pub(crate) const TASK_ELEMS: usize = 1 << 14;

/// Elements that are converted together.
const TILE: usize = 1024;

/// Calls `f` for each tile of `out` with the number of its first element, in parallel; `work` is that of one element.
fn each_tile<Y: Send>(
    cpu: Cpu<'_>,
    work: usize,
    out: &mut [Y],
    f: impl Fn(usize, &mut [Y]) + Sync,
) -> Result<()> {
    let task = if cpu.parts(out.len() * work) == 1 { out.len().max(1) } else { TASK_ELEMS };
    chunks(cpu.pool, out, task, |i, out| {
        for (t, out) in out.chunks_mut(TILE).enumerate() {
            f(i * task + t * TILE, out);
        }
    })
}

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
