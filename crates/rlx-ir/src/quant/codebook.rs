//! The search for the scale of 32 values whose quants select [`iq4_nl::VALUES`](super::iq4_nl::VALUES).

use super::iq4_nl::VALUES;
use super::search;

const COUNT: usize = 32;
const LAST: usize = VALUES.len() - 1;

/// Where the nearest value changes, and by how much it grows there.
const STEPS: [(f32, f32); LAST] = {
    let mut steps = [(0.0, 0.0); LAST];
    let mut i = 0;
    while i < LAST {
        let (low, high) = (VALUES[i] as f32, VALUES[i + 1] as f32);
        steps[i] = ((low + high) / 2.0, high - low);
        i += 1;
    }
    steps
};

/// The value nearest to each of `x * inverse_scale`. Sums of steps instead of a search, which would branch.
fn nearest(x: &[f32; COUNT], inverse_scale: f32) -> [f32; COUNT] {
    let mut values = [f32::from(VALUES[0]); COUNT];
    for (middle, growth) in STEPS {
        for (value, v) in values.iter_mut().zip(x) {
            *value += if v * inverse_scale > middle { growth } else { 0.0 };
        }
    }
    values
}

/// The quants of `x` where the scale is `d`.
pub(super) fn quants(x: &[f32; COUNT], d: f32) -> [u8; COUNT] {
    let inverse = search::inverse(d);
    x.map(|v| STEPS.iter().filter(|(middle, _)| v * inverse > *middle).count() as u8)
}

/// The weighted squared error of `x` with the best quants for the scale `d`.
pub(super) fn error(x: &[f32; COUNT], weights: &[f32; COUNT], d: f32) -> f32 {
    let values = nearest(x, search::inverse(d));
    let off: [f32; COUNT] = std::array::from_fn(|i| d * values[i] - x[i]);
    let [sum] = search::sums(&off, weights, |off, w| [w * off * off]);
    sum
}

/// The scale with which the values are nearest to `x`; 0 where all are 0.
pub(super) fn scale(x: &[f32; COUNT], weights: &[f32; COUNT]) -> f32 {
    let weights = search::usable(weights, &[1.0; COUNT]);
    let peak = x.iter().fold(0f32, |m, &v| if v.abs() > m.abs() { v } else { m });
    let (low, high) = (f32::from(VALUES[0]), f32::from(VALUES[LAST]));
    if search::inverse(peak) == 0.0 {
        return peak / low;
    }
    let fit = |inverse_scale: f32| {
        let values = nearest(x, inverse_scale);
        let weighted: [f32; COUNT] = std::array::from_fn(|i| weights[i] * values[i]);
        let [xq] = search::sums(x, &weighted, |v, wq| [wq * v]);
        let [qq] = search::sums(&values, &weighted, |q, wq| [wq * q]);
        // The fit lowers the error by xq^2 / qq.
        let scale = xq * search::inverse(qq);
        (xq * scale, scale)
    };
    let mut best = (f32::NEG_INFINITY, peak / low);
    for i in 0..24 {
        let factor = 0.75 + 0.5 * i as f32 / 23.0;
        for end in [low, high] {
            let found = fit(factor * end / peak);
            if found.0 > best.0 {
                best = found;
            }
        }
    }
    search::improve(best, fit)
}
