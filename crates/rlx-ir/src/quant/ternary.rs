//! The fit of the ternary formats: `x = d * t` with `t` in -1, 0, 1.

use super::search;

/// The scale that gives the least squared error: the mean of the `k` largest magnitudes, for the best `k`.
pub(super) fn scale(x: &[f32; 256]) -> f32 {
    let mut magnitudes = x.map(f32::abs);
    magnitudes.sort_unstable_by(|a, b| b.total_cmp(a));
    let (mut sum, mut best) = (0f64, (0f64, 0f64));
    for (i, magnitude) in magnitudes.into_iter().enumerate() {
        let k = (i + 1) as f64;
        sum += f64::from(magnitude);
        // With the k largest at `sum / k` the error falls by this.
        let gain = sum * sum / k;
        if gain > best.0 {
            best = (gain, sum / k);
        }
    }
    best.1 as f32
}

/// The digits of all elements, 0 to 2: one more than `t`.
pub(super) fn digits(x: &[f32; 256], d: f32) -> [u8; 256] {
    let inverse = search::inverse(d);
    x.map(|v| (search::nearest(v * inverse, -1, 1) + 1) as u8)
}
