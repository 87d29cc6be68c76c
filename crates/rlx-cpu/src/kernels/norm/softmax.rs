//! Softmax of rows.

use super::{RowNorm, rows, update};
use crate::error::Result;
use crate::kernels::Cpu;
use crate::kernels::matmul::{Element, load_part, store_part};
use crate::simd::{LANES, Simd, math, reduce_max, reduce_sum};

/// `exp(scale x - max) / Σ exp(scale x - max)` for each row. A row of negative infinities gives zeros.
///
/// Shapes: x and out `[rows, cols]`. Dtypes: f32, f16, bf16. Errors: `InvalidArgument` where lengths do not agree.
pub fn softmax<T: Element>(cpu: Cpu<'_>, cols: usize, scale: f32, x: &[T], out: &mut [T]) -> Result<()> {
    rows(cpu, "softmax", Softmax { scale }, cols, x, None, out)
}

#[derive(Clone, Copy)]
struct Softmax {
    scale: f32,
}

impl RowNorm for Softmax {
    #[inline(always)]
    fn row<S: Simd>(&self, s: S, x: &mut [f32]) {
        let scale = s.splat(self.scale);
        update!(s, x, |_, x| s.mul(x, scale));
        let max = reduce_max(s, x);
        if max == f32::NEG_INFINITY {
            x.fill(0.0);
            return;
        }
        let max = s.splat(max);
        update!(s, x, |_, x| math::exp(s, s.sub(x, max)));
        let sum = s.splat(reduce_sum(s, x));
        update!(s, x, |_, x| s.div(x, sum));
    }
}
