//! Reductions of whole slices through sixteen-lane vectors, the tail in a padded vector.

use super::{LANES, Simd};

/// The first `x.len()` (at most 16) lanes from `x`, the others `pad`. Not inlined: what is rare must not fill every loop.
#[inline(never)]
pub fn tail(x: &[f32], pad: f32) -> [f32; LANES] {
    let mut padded = [pad; LANES];
    for (p, &x) in padded.iter_mut().zip(x) {
        *p = x;
    }
    padded
}

macro_rules! reduction {
    ($(#[$doc:meta])* $name:ident, $unit:expr, $op:ident, |$s:ident, $acc:ident| $fold:expr) => {
        $(#[$doc])*
        #[inline(always)]
        pub fn $name<S: Simd>($s: S, x: &[f32]) -> f32 {
            let (whole, rest) = x.as_chunks::<LANES>();
            let mut $acc = $s.splat($unit);
            for x in whole {
                $acc = $s.$op($acc, $s.load(x));
            }
            if !rest.is_empty() {
                $acc = $s.$op($acc, $s.load(&tail(rest, $unit)));
            }
            $fold
        }
    };
}

reduction! {
    /// The sum: 16 strided partial sums, then the fixed tree. 0 for an empty slice.
    reduce_sum, 0.0, add, |s, acc| s.sum(acc)
}
reduction! {
    /// The product, ordered as [`reduce_sum`]. 1 for an empty slice.
    reduce_prod, 1.0, mul, |s, acc| s.fold(acc, |a, b| a * b)
}
reduction! {
    /// The largest value, NaN where any is NaN. Negative infinity for an empty slice.
    reduce_max, f32::NEG_INFINITY, max, |s, acc| s.fold_max(acc)
}
reduction! {
    /// The smallest value, NaN where any is NaN. Infinity for an empty slice.
    reduce_min, f32::INFINITY, min, |s, acc| s.fold(acc, |a, b| if a < b || a.is_nan() { a } else { b })
}
