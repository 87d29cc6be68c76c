//! The search for scales, shared by all formats.
//!
//! Each search tries a fan of starting scales. For each it rounds the values to integers, solves for the scale that is the
//! weighted least-squares fit to these integers, and keeps the best. All deterministic. [`affine`](super::affine) does the
//! same for a scale and a minimum, [`codebook`](super::codebook) for values that are not evenly spaced.

/// The weight of each value's squared error, at most 1: its importance relative to the row's largest.
pub(super) fn weights(x: &[f32], importance: Option<&[f32]>) -> Vec<f32> {
    match importance {
        Some(importance) => {
            let largest = importance.iter().copied().fold(f32::MIN_POSITIVE, f32::max);
            importance.iter().map(|i| i / largest).collect()
        }
        None => vec![1.0; x.len()],
    }
}

/// `value` to the nearest integer (ties to even) in `low..=high`, which lie within 2^22 of 0; NaN gives `low`.
#[inline(always)]
pub(super) fn rounded(value: f32, low: f32, high: f32) -> f32 {
    // The sum has no bits for a fraction. `round_ties_even` is a call where the target has no instruction for it.
    const SHIFT: f32 = 1.5 * (1 << 23) as f32;
    (value.max(low).min(high) + SHIFT) - SHIFT
}

/// [`rounded`] as an integer.
pub(super) fn nearest(value: f32, low: i32, high: i32) -> i32 {
    rounded(value, low as f32, high as f32) as i32
}

/// `1 / value`, or 0 where that is not finite.
pub(super) fn inverse(value: f32) -> f32 {
    let inverse = 1.0 / value;
    if inverse.is_finite() { inverse } else { 0.0 }
}

/// The weights to search with: all alike where the given ones leave nothing to weigh.
pub(super) fn usable<'a>(weights: &'a [f32], ones: &'a [f32; 32]) -> &'a [f32] {
    let total: f32 = weights.iter().sum();
    if total > 0.0 && total.is_finite() { weights } else { &ones[..weights.len()] }
}

/// The sums of several terms of each value and its weight, kept in lanes so that they vectorise.
#[inline(always)]
pub(super) fn sums<const N: usize>(
    x: &[f32],
    weights: &[f32],
    terms: impl Fn(f32, f32) -> [f32; N],
) -> [f32; N] {
    const LANES: usize = 8;
    let mut sums = [[0f32; LANES]; N];
    let (x, x_rest) = x.as_chunks::<LANES>();
    let (weights, weights_rest) = weights.as_chunks::<LANES>();
    let mut add = |x: &[f32], weights: &[f32]| {
        for (lane, (&x, &weight)) in x.iter().zip(weights).enumerate() {
            for (sums, term) in sums.iter_mut().zip(terms(x, weight)) {
                sums[lane] += term;
            }
        }
    };
    for (x, weights) in x.iter().zip(weights) {
        add(x, weights);
    }
    add(x_rest, weights_rest);
    sums.map(|lanes| lanes.iter().sum())
}

/// The scale `d` for which `d * q` is nearest to `x` with integers `q` in `-high-1..=high`; it may be negative.
///
/// `x` holds at most 32 values. 0 where all are 0.
pub(super) fn symmetric(x: &[f32], weights: &[f32], high: i32) -> f32 {
    let weights = usable(weights, &[1.0; 32]);
    let peak = x.iter().fold(0f32, |m, &v| if v.abs() > m.abs() { v } else { m });
    let (low, high) = (-high as f32 - 1.0, high as f32);
    if inverse(peak) == 0.0 {
        return peak / low;
    }
    let fit = |inverse_scale: f32| {
        let [xq, qq] = sums(x, weights, |v, w| {
            let q = rounded(v * inverse_scale, low, high);
            [w * q * v, w * q * q]
        });
        // The fit lowers the error by xq^2 / qq.
        let scale = xq * inverse(qq);
        (xq * scale, scale)
    };
    // How far below and above the end of the range the peak may come to lie: with few steps a clipped peak costs little,
    // with many steps a larger scale does.
    let below = (0.45 * high).min(3.0).max(0.19 * high);
    let above = (0.45 * high).min(4.0);
    // With 8 bits both ends are as good, but the error varies fast.
    let fine = high > 63.0;
    let count = if fine { 72 } else { 36 };
    let mut best = (f32::NEG_INFINITY, peak / low);
    for i in 0..count {
        let shift = -below + (below + above) * i as f32 / (count - 1) as f32;
        for end in [low - shift, high + shift].into_iter().take(if fine { 1 } else { 2 }) {
            let found = fit(end / peak);
            if found.0 > best.0 {
                best = found;
            }
        }
    }
    improve(best, fit)
}

/// From the best of a fan, alternates rounding and fitting while that helps; returns the scale.
///
/// `fit` gives for an inverse scale how much the error falls, and the fitted scale.
pub(super) fn improve(mut best: (f32, f32), fit: impl Fn(f32) -> (f32, f32)) -> f32 {
    for _ in 0..4 {
        let found = fit(inverse(best.1));
        if found.0.is_nan() || found.0 <= best.0 {
            break;
        }
        best = found;
    }
    best.1
}

/// The weighted squared error of `d * q` with the best integers `q` in `-high-1..=high`.
pub(super) fn symmetric_error(x: &[f32], weights: &[f32], high: i32, d: f32) -> f32 {
    let (low, high) = (-high as f32 - 1.0, high as f32);
    error(x, weights, d, |v| rounded(v, low, high))
}

/// The weighted squared error of `d * q`, where `quant` rounds values in units of `d`.
#[inline(always)]
pub(super) fn error(x: &[f32], weights: &[f32], d: f32, quant: impl Fn(f32) -> f32) -> f32 {
    let inverse_scale = inverse(d);
    let [sum] = sums(x, weights, |v, w| {
        let off = d * quant(v * inverse_scale) - v;
        [w * off * off]
    });
    sum
}

/// The step `d` for which `d * q` is nearest to the non-negative `x` with integers `q` in `0..=high`.
///
/// `x` holds at most 32 values. 0 where all are 0.
pub(super) fn positive(x: &[f32], weights: &[f32], high: i32) -> f32 {
    let weights = usable(weights, &[1.0; 32]);
    let most = x.iter().copied().fold(0f32, f32::max);
    let high = high as f32;
    let plain = most / high;
    if inverse(plain) == 0.0 {
        return plain;
    }
    let error = |d: f32| error(x, weights, d, |v| rounded(v, 0.0, high));
    let mut best = (error(plain), plain);
    for step in -10..=10 {
        let inverse_scale = (high + 0.1 * step as f32) / most;
        let [xq, qq] = sums(x, weights, |v, w| {
            let q = rounded(v * inverse_scale, 0.0, high);
            [w * q * v, w * q * q]
        });
        let d = xq * inverse(qq);
        let e = error(d);
        if d > 0.0 && e < best.0 {
            best = (e, d);
        }
    }
    best.1
}
