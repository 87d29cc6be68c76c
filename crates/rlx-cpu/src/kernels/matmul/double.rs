//! The product of two matrices of f64.

use rlx_ir::bail;

use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::pool::chunks;
use crate::simd::{Kernel, LANES, Simd};

/// How the right operand lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// `[K, N]`.
    Plain,
    /// `[N, K]`.
    Transposed,
}

/// `out = a · b`, without gaps.
///
/// Shapes: a `[M, K]`, b as [`Right`] says, out `[M, N]`. Numerics: each element in ascending k, or (transposed) in 16 strided sums
/// and a fixed tree. Errors: `InvalidArgument` where lengths do not agree.
pub fn double(
    cpu: Cpu<'_>,
    [m, n, k]: [usize; 3],
    a: &[f64],
    (b, right): (&[f64], Right),
    out: &mut [f64],
) -> Result<()> {
    let fits = |rows: usize, cols: usize, len: usize| rows.checked_mul(cols) == Some(len);
    if !fits(m, k, a.len()) || !fits(n, k, b.len()) || !fits(m, n, out.len()) {
        let (a, b, out) = (a.len(), b.len(), out.len());
        bail!(InvalidArgument, "product of [{m}, {k}] and [{k}, {n}] from {a} and {b} elements into {out}");
    }
    if out.is_empty() {
        return Ok(());
    }
    let each = m.div_ceil(cpu.parts(out.len().saturating_mul(k)));
    chunks(cpu.pool, out, each * n, |i, out| {
        for (r, out) in out.chunks_exact_mut(n).enumerate() {
            let a = &a[(i * each + r) * k..][..k];
            cpu.level.dispatch(Row { a, b, right, out });
        }
    })
}

struct Row<'a> {
    a: &'a [f64],
    b: &'a [f64],
    right: Right,
    out: &'a mut [f64],
}

impl Kernel for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { a, b, right, out } = self;
        out.fill(0.0);
        if a.is_empty() {
            return;
        }
        if right == Right::Transposed {
            for (out, b) in out.iter_mut().zip(b.chunks_exact(a.len())) {
                *out = dot(a, b);
            }
            return;
        }
        for (a, b) in a.iter().zip(b.chunks_exact(out.len())) {
            for (out, b) in out.iter_mut().zip(b) {
                *out += a * b;
            }
        }
    }
}

#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for i in 0..LANES {
            sums[i] += a[i] * b[i];
        }
    }
    for (sum, (a, b)) in sums.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *sum += a * b;
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            sums[i] += sums[i + width];
        }
        width /= 2;
    }
    sums[0]
}
