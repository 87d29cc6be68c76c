//! The place of the largest element along an axis.

use bytemuck::Pod;
use rlx_ir::bail;

use super::Ordered;
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::scratch::with_scratch;
use crate::pool::chunks;
use crate::simd::{Kernel, Simd};

/// Neighbouring lines that are walked through together.
const TILE: usize = 512;

/// `out[o, n]` is the place of the largest of `x[o, :, n]`: the first of equal ones; NaN is larger than every number.
///
/// Shapes: x `[outer, size, inner]`, out `[outer, inner]`. Errors: `InvalidArgument` where lengths do not agree, or `size` is 0
/// or above the range of i32.
pub fn argmax<T: Ordered + Pod>(
    cpu: Cpu<'_>,
    [outer, size, inner]: [usize; 3],
    x: &[T],
    out: &mut [i32],
) -> Result<()> {
    let lines = outer.checked_mul(inner);
    if lines != Some(out.len()) || lines.and_then(|n| n.checked_mul(size)) != Some(x.len()) {
        let (x, out) = (x.len(), out.len());
        bail!(InvalidArgument, "argmax of [{outer}, {size}, {inner}]: {x} elements into {out}");
    }
    if size == 0 || i32::try_from(size).is_err() {
        bail!(InvalidArgument, "argmax of {size} elements");
    }
    if out.is_empty() {
        return Ok(());
    }
    let each = outer.div_ceil(cpu.parts(x.len())) * inner;
    chunks(cpu.pool, out, each, |i, out| {
        let x = &x[i * each * size..];
        if inner == 1 {
            for (x, out) in x.chunks_exact(size).zip(out) {
                *out = cpu.level.dispatch(Line(x));
            }
            return;
        }
        for (x, out) in x.chunks_exact(size * inner).zip(out.chunks_exact_mut(inner)) {
            with_scratch(TILE, |best: &mut [T]| {
                for (t, out) in out.chunks_mut(TILE).enumerate() {
                    let best = &mut best[..out.len()];
                    cpu.level.dispatch(Lines { x: &x[t * TILE..], inner, best, out });
                }
            });
        }
    })
}

/// A line without gaps.
struct Line<'a, T>(&'a [T]);

impl<T: Ordered> Kernel for Line<'_, T> {
    type Output = i32;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> i32 {
        let Some(first) = self.0.first() else { return 0 };
        let mut largest = first.key();
        for x in self.0 {
            largest = largest.max(x.key());
        }
        self.0.iter().position(|x| x.key() == largest).unwrap_or(0) as i32
    }
}

/// Lines beside each other, whose elements lie `inner` apart.
struct Lines<'a, T> {
    x: &'a [T],
    inner: usize,
    best: &'a mut [T],
    out: &'a mut [i32],
}

impl<T: Ordered> Kernel for Lines<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { x, inner, best, out } = self;
        out.fill(0);
        best.copy_from_slice(&x[..out.len()]);
        for (place, x) in (0..).zip(x.chunks(inner)) {
            for ((x, best), out) in x.iter().zip(best.iter_mut()).zip(out.iter_mut()) {
                let larger = x.key() > best.key();
                *best = if larger { *x } else { *best };
                *out = if larger { place } else { *out };
            }
        }
    }
}
