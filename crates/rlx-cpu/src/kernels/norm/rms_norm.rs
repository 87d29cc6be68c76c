//! Root-mean-square norm.

use super::{AddFirst, RowNorm, check_parameter, parameter_at, rows, sum_of_squares, update};
use crate::error::Result;
use crate::kernels::Cpu;
use crate::kernels::matmul::Element;
use crate::simd::Simd;

/// `x / sqrt(mean(x²) + epsilon) * weight` for each row.
///
/// Shapes: x and out `[rows, cols]`, weight `[cols]`. Dtypes: f32, f16, bf16. Errors: `InvalidArgument` where lengths
/// do not agree.
pub fn rms_norm<T: Element>(
    cpu: Cpu<'_>,
    cols: usize,
    epsilon: f32,
    weight: Option<&[f32]>,
    x: &[T],
    add: Option<AddFirst<'_, T>>,
    out: &mut [T],
) -> Result<()> {
    check_parameter("rms_norm", weight, cols)?;
    rows(cpu, "rms_norm", RmsNorm { epsilon, weight }, cols, x, add, out)
}

#[derive(Clone, Copy)]
struct RmsNorm<'a> {
    epsilon: f32,
    weight: Option<&'a [f32]>,
}

impl RowNorm for RmsNorm<'_> {
    #[inline(always)]
    fn row<S: Simd>(&self, s: S, x: &mut [f32]) {
        let scale = s.splat(1.0 / (sum_of_squares(s, x) / x.len() as f32 + self.epsilon).sqrt());
        update(s, x, |at, x| {
            let y = s.mul(x, scale);
            self.weight.map_or(y, |weight| s.mul(y, parameter_at(s, weight, at)))
        });
    }
}
