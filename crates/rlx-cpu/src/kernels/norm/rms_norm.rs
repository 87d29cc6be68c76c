//! Root-mean-square norm.

use super::{AddFirst, RowNorm, check_parameter, parameter_at, rows, squares_in_range, update};
use crate::error::Result;
use crate::kernels::Cpu;
use crate::kernels::matmul::{Element, load_part, store_part};
use crate::simd::{LANES, Simd};

/// `x / sqrt(mean(x²) + epsilon) * (offset + weight)` for each row; models whose weights are around 0 have an offset of 1.
///
/// Shapes: x and out `[rows, cols]`, weight `[cols]`. Dtypes: f32, f16, bf16. Errors: `InvalidArgument` where lengths
/// do not agree.
pub fn rms_norm<T: Element>(
    cpu: Cpu<'_>,
    cols: usize,
    epsilon: f32,
    (weight, offset): (Option<&[f32]>, f32),
    x: &[T],
    add: Option<AddFirst<'_, T>>,
    out: &mut [T],
) -> Result<()> {
    check_parameter("rms_norm", weight, cols)?;
    rows(cpu, "rms_norm", RmsNorm { epsilon, weight, offset }, cols, x, add, out)
}

#[derive(Clone, Copy)]
struct RmsNorm<'a> {
    epsilon: f32,
    weight: Option<&'a [f32]>,
    offset: f32,
}

impl RowNorm for RmsNorm<'_> {
    #[inline(always)]
    fn row<S: Simd>(&self, s: S, x: &mut [f32]) {
        let (squares, scale) = squares_in_range(s, x, self.epsilon);
        let epsilon = self.epsilon * scale * scale;
        let scale = s.splat(1.0 / (squares / x.len() as f32 + epsilon).sqrt());
        match self.weight {
            None => update!(s, x, |_, x| s.mul(x, scale)),
            Some(weight) if self.offset == 0.0 => {
                update!(s, x, |at, x| s.mul(s.mul(x, scale), parameter_at(s, weight, at)));
            }
            Some(weight) => {
                let offset = s.splat(self.offset);
                update!(s, x, |at, x| { s.mul(s.mul(x, scale), s.add(offset, parameter_at(s, weight, at))) });
            }
        }
    }
}
