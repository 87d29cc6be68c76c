//! Division of rows by their length.

use super::{RowNorm, rows, squares_in_range, update};
use crate::error::Result;
use crate::kernels::Cpu;
use crate::kernels::matmul::{Element, load_part, store_part};
use crate::simd::{LANES, Simd};

/// `x / max(sqrt(Σ x²), epsilon)` for each row; NaN stays NaN.
///
/// Shapes: x and out `[rows, cols]`. Dtypes: f32, f16, bf16. Errors: `InvalidArgument` where lengths do not agree.
pub fn l2_normalize<T: Element>(
    cpu: Cpu<'_>,
    cols: usize,
    epsilon: f32,
    x: &[T],
    out: &mut [T],
) -> Result<()> {
    rows(cpu, "l2_normalize", L2Normalize { epsilon }, cols, x, None, out)
}

#[derive(Clone, Copy)]
struct L2Normalize {
    epsilon: f32,
}

impl RowNorm for L2Normalize {
    #[inline(always)]
    fn row<S: Simd>(&self, s: S, x: &mut [f32]) {
        let (squares, scale) = squares_in_range(s, x, self.epsilon * self.epsilon);
        let (length, epsilon) = (squares.sqrt(), self.epsilon * scale);
        let length = s.splat(if length < epsilon { epsilon } else { length });
        update!(s, x, |_, x| s.div(x, length));
    }
}
