//! Whole slices through sixteen-lane vectors: every position gets the result of the same vector operation, the tail
//! in a padded vector.

use super::{LANES, Simd};

/// The first `x.len()` (at most 16) lanes from `x`, the others `pad`.
#[inline(always)]
pub fn tail(x: &[f32], pad: f32) -> [f32; LANES] {
    let mut padded = [pad; LANES];
    for (p, &x) in padded.iter_mut().zip(x) {
        *p = x;
    }
    padded
}

/// `out[i] = f(x[i])`, where the slices have one length.
#[inline(always)]
pub fn map_into<S: Simd>(s: S, x: &[f32], out: &mut [f32], f: impl Fn(S, S::F) -> S::F) {
    let (x_whole, x_tail) = x.as_chunks::<LANES>();
    let (out_whole, out_tail) = out.as_chunks_mut::<LANES>();
    for (x, out) in x_whole.iter().zip(out_whole) {
        s.store(f(s, s.load(x)), out);
    }
    if !x_tail.is_empty() {
        let mut padded = [0.0; LANES];
        s.store(f(s, s.load(&tail(x_tail, 0.0))), &mut padded);
        for (o, p) in out_tail.iter_mut().zip(padded) {
            *o = p;
        }
    }
}

#[inline(always)]
fn reduce<S: Simd>(
    s: S,
    x: &[f32],
    unit: f32,
    vector: impl Fn(S::F, S::F) -> S::F,
    scalar: impl Fn(f32, f32) -> f32,
) -> f32 {
    let (whole, rest) = x.as_chunks::<LANES>();
    let mut acc = s.splat(unit);
    for x in whole {
        acc = vector(acc, s.load(x));
    }
    if !rest.is_empty() {
        acc = vector(acc, s.load(&tail(rest, unit)));
    }
    s.fold(acc, scalar)
}

/// The sum: 16 strided partial sums, then the fixed tree. 0 for an empty slice.
#[inline(always)]
pub fn reduce_sum<S: Simd>(s: S, x: &[f32]) -> f32 {
    reduce(s, x, 0.0, |a, b| s.add(a, b), |a, b| a + b)
}

/// The product, ordered as [`reduce_sum`]. 1 for an empty slice.
#[inline(always)]
pub fn reduce_prod<S: Simd>(s: S, x: &[f32]) -> f32 {
    reduce(s, x, 1.0, |a, b| s.mul(a, b), |a, b| a * b)
}

/// The largest value, NaN where any is NaN. Negative infinity for an empty slice.
#[inline(always)]
pub fn reduce_max<S: Simd>(s: S, x: &[f32]) -> f32 {
    reduce(s, x, f32::NEG_INFINITY, |a, b| s.max(a, b), |a, b| if a > b || a.is_nan() { a } else { b })
}

/// The smallest value, NaN where any is NaN. Infinity for an empty slice.
#[inline(always)]
pub fn reduce_min<S: Simd>(s: S, x: &[f32]) -> f32 {
    reduce(s, x, f32::INFINITY, |a, b| s.min(a, b), |a, b| if a < b || a.is_nan() { a } else { b })
}
