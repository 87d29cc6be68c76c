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
    x.iter().zip(weights).zip(values).fold(0f32, |sum, ((&v, &w), value)| {
        let off = d * value - v;
        sum + w * off * off
    })
}

/// The scale with which the values are nearest to `x`; 0 where all are 0.
pub(super) fn scale(x: &[f32; COUNT], weights: &[f32; COUNT]) -> f32 {
    let weights = search::usable(weights, &[1.0; COUNT]);
    let peak = x.iter().fold(0f32, |m, &v| if v.abs() > m.abs() { v } else { m });
    let (low, high) = (f32::from(VALUES[0]), f32::from(VALUES[LAST]));
    if search::inverse(peak) == 0.0 {
        return peak / low;
    }
    // How much the fit to the values that `inverse_scale` selects lowers the error, and its scale.
    let fit = |inverse_scale: f32| {
        let (mut xq, mut qq) = (0f32, 0f32);
        for ((&v, &w), q) in x.iter().zip(weights).zip(nearest(x, inverse_scale)) {
            xq += w * v * q;
            qq += w * q * q;
        }
        let scale = xq * search::inverse(qq);
        (xq * scale, scale)
    };
    let mut best = (f32::NEG_INFINITY, peak / low);
    for step in -12..=12 {
        let shift = (2 * step) as f32;
        for end in [low, high] {
            let found = fit((end + shift) / peak);
            if found.0 > best.0 {
                best = found;
            }
        }
    }
    // From the best of the fan, alternate selecting and fitting while that helps.
    for _ in 0..4 {
        let found = fit(search::inverse(best.1));
        if found.0.is_nan() || found.0 <= best.0 {
            break;
        }
        best = found;
    }
    best.1
}
