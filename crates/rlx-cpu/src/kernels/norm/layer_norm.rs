//! Layer norm.

use super::{
    AddFirst, DOWN, RowNorm, check_parameter, parameter_at, rows, scale_row, squares_in_range, update,
};
use crate::error::Result;
use crate::kernels::Cpu;
use crate::kernels::matmul::{Element, load_part, store_part};
use crate::simd::{LANES, Simd, reduce_sum};

/// `(x - mean) / sqrt(variance + epsilon) * weight + bias` for each row; the variance is the mean square of the
/// centred row.
///
/// Shapes: x and out `[rows, cols]`, weight and bias `[cols]`. Dtypes: f32, f16, bf16. Errors: `InvalidArgument` where
/// lengths do not agree.
pub fn layer_norm<T: Element>(
    cpu: Cpu<'_>,
    cols: usize,
    epsilon: f32,
    (weight, bias): (Option<&[f32]>, Option<&[f32]>),
    x: &[T],
    add: Option<AddFirst<'_, T>>,
    out: &mut [T],
) -> Result<()> {
    check_parameter("layer_norm", weight, cols)?;
    check_parameter("layer_norm", bias, cols)?;
    rows(cpu, "layer_norm", LayerNorm { epsilon, weight, bias }, cols, x, add, out)
}

/// Up to this sum no element less the mean is beyond f32: the largest f32 are 2^104 apart.
const LARGE_SUM: f32 = (1u128 << 100) as f32;

#[derive(Clone, Copy)]
struct LayerNorm<'a> {
    epsilon: f32,
    weight: Option<&'a [f32]>,
    bias: Option<&'a [f32]>,
}

impl RowNorm for LayerNorm<'_> {
    #[inline(always)]
    fn row<S: Simd>(&self, s: S, x: &mut [f32]) {
        let count = x.len() as f32;
        let mut epsilon = self.epsilon;
        let mut sum = reduce_sum(s, x);
        // NaN too: partial sums may be infinite with either sign.
        if sum.is_nan() || sum.abs() > LARGE_SUM {
            scale_row(s, x, DOWN);
            // Not to 0, by which a row of equal elements would be divided.
            epsilon = (epsilon * DOWN * DOWN).max(epsilon.min(f32::MIN_POSITIVE));
            sum = reduce_sum(s, x);
        }
        let mean = s.splat(sum / count);
        update!(s, x, |_, x| s.sub(x, mean));
        let (squares, scale) = squares_in_range(s, x, epsilon);
        let scale = s.splat(1.0 / (squares / count + epsilon * scale * scale).sqrt());
        update!(s, x, |at, x| {
            let mut y = s.mul(x, scale);
            if let Some(weight) = self.weight {
                y = s.mul(y, parameter_at(s, weight, at));
            }
            if let Some(bias) = self.bias {
                y = s.add(y, parameter_at(s, bias, at));
            }
            y
        });
    }
}
