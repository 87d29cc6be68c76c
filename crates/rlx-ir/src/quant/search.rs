//! The search for scales and minimums, shared by all formats.
//!
//! Each search tries a fan of starting scales. For each it rounds the values to integers, solves for the scale (and
//! minimum) that is the weighted least-squares fit to these integers, and keeps the best. All deterministic.

/// The weight of each value's squared error: see [`BlockType::encode`](super::BlockType::encode).
pub(super) fn weights(x: &[f32], importance: Option<&[f32]>) -> Vec<f32> {
    let sum: f64 = x.iter().map(|v| f64::from(*v) * f64::from(*v)).sum();
    let mean_square = sum / x.len().max(1) as f64;
    let own = |v: f32| libm::sqrt(mean_square + f64::from(v) * f64::from(v)) as f32;
    match importance {
        Some(importance) => x.iter().zip(importance).map(|(&v, &i)| i * own(v)).collect(),
        None => x.iter().map(|&v| own(v)).collect(),
    }
}

/// `value` to the nearest integer in `low..=high`; NaN gives `low`.
pub(super) fn nearest(value: f32, low: i32, high: i32) -> i32 {
    value.round_ties_even().max(low as f32).min(high as f32) as i32
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

/// The scale `d`, of either sign, for which `d * q` is nearest to `x` with integers `q` in `-high-1..=high`.
///
/// `x` holds at most 32 values. 0 where all are 0.
pub(super) fn symmetric(x: &[f32], weights: &[f32], high: i32) -> f32 {
    let weights = usable(weights, &[1.0; 32]);
    let peak = x.iter().fold(0f32, |m, &v| if v.abs() > m.abs() { v } else { m });
    if inverse(peak) == 0.0 {
        return peak / -(high + 1) as f32;
    }
    let low = -high - 1;
    let mut best = (f32::NEG_INFINITY, 0.0);
    let mut consider = |inverse_scale: f32| {
        let (mut xq, mut qq) = (0f32, 0f32);
        for (&v, &w) in x.iter().zip(weights) {
            let q = nearest(v * inverse_scale, low, high) as f32;
            xq += w * v * q;
            qq += w * q * q;
        }
        // The fit lowers the error by xq^2 / qq.
        let scale = xq * inverse(qq);
        if xq * scale > best.0 {
            best = (xq * scale, scale);
        }
    };
    for step in -9..=9 {
        let shift = 0.1 * step as f32;
        consider((low as f32 + shift) / peak);
        consider((high as f32 + shift) / peak);
    }
    if best.1 == 0.0 { peak / low as f32 } else { best.1 }
}

/// The weighted squared error of `d * q` with the best integers `q` in `-high-1..=high`.
pub(super) fn symmetric_error(x: &[f32], weights: &[f32], high: i32, d: f32) -> f32 {
    let inverse_scale = inverse(d);
    x.iter().zip(weights).fold(0f32, |sum, (&v, &w)| {
        let off = d * nearest(v * inverse_scale, -high - 1, high) as f32 - v;
        sum + w * off * off
    })
}

/// Where the minimum of an affine fit may lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Minimum {
    /// Anywhere.
    Free,
    /// At most 0, for formats that store its magnitude.
    NotPositive,
}

/// `(d, m)` for which `d * q + m` is nearest to `x` with integers `q` in `0..=high`; `d >= 0`.
///
/// `x` holds at most 32 values.
pub(super) fn affine(x: &[f32], weights: &[f32], high: i32, minimum: Minimum) -> (f32, f32) {
    let weights = usable(weights, &[1.0; 32]);
    let bound = |m: f32| if minimum == Minimum::NotPositive { m.min(0.0) } else { m };
    let least = bound(x.iter().copied().fold(f32::INFINITY, f32::min));
    let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let range = most - least;
    if inverse(range) == 0.0 || !range.is_finite() {
        return (0.0, least);
    }
    let error = |d: f32, m: f32| affine_error(x, weights, high, d, m);
    let plain = range / high as f32;
    let mut best = (error(plain, least), plain, least);
    for step in -12..=24 {
        let inverse_scale = (high as f32 + 0.1 * step as f32) / range;
        let Some((d, m)) = affine_fit(x, weights, inverse_scale, least, high, &bound) else { continue };
        let e = error(d, m);
        if e < best.0 {
            best = (e, d, m);
        }
    }
    // From the best of the fan, alternate rounding and fitting while that helps.
    for _ in 0..4 {
        let Some((d, m)) = affine_fit(x, weights, inverse(best.1), best.2, high, &bound) else { break };
        let e = error(d, m);
        if e >= best.0 {
            break;
        }
        best = (e, d, m);
    }
    (best.1, best.2)
}

/// The weighted squared error of `d * q + m` with the best integers `q` in `0..=high`.
pub(super) fn affine_error(x: &[f32], weights: &[f32], high: i32, d: f32, m: f32) -> f32 {
    let inverse_scale = inverse(d);
    x.iter().zip(weights).fold(0f32, |sum, (&v, &w)| {
        let off = d * nearest((v - m) * inverse_scale, 0, high) as f32 + m - v;
        sum + w * off * off
    })
}

/// The least-squares `(d, m)` for the integers that `inverse_scale` and `offset` round `x` to.
fn affine_fit(
    x: &[f32],
    weights: &[f32],
    inverse_scale: f32,
    offset: f32,
    high: i32,
    bound: &impl Fn(f32) -> f32,
) -> Option<(f32, f32)> {
    let (mut sw, mut sx, mut sq, mut sxq, mut sqq) = (0f32, 0f32, 0f32, 0f32, 0f32);
    for (&v, &w) in x.iter().zip(weights) {
        let q = nearest((v - offset) * inverse_scale, 0, high) as f32;
        sw += w;
        sx += w * v;
        sq += w * q;
        sxq += w * v * q;
        sqq += w * q * q;
    }
    let determinant = sw * sqq - sq * sq;
    if determinant.is_nan() || determinant <= 0.0 {
        return None;
    }
    let d = (sw * sxq - sx * sq) / determinant;
    let m = (sqq * sx - sq * sxq) / determinant;
    let bounded = bound(m);
    let d = if bounded == m { d } else { sxq / sqq };
    (d > 0.0 && d.is_finite() && m.is_finite()).then_some((d, bounded))
}

/// The step `d` for which `d * q` is nearest to the non-negative `x` with integers `q` in `0..=high`.
///
/// `x` holds at most 32 values. 0 where all are 0.
pub(super) fn positive(x: &[f32], weights: &[f32], high: i32) -> f32 {
    let weights = usable(weights, &[1.0; 32]);
    let most = x.iter().copied().fold(0f32, f32::max);
    let plain = most / high as f32;
    if inverse(plain) == 0.0 {
        return plain;
    }
    let error = |d: f32| {
        let inverse_scale = inverse(d);
        x.iter().zip(weights).fold(0f32, |sum, (&v, &w)| {
            let off = d * nearest(v * inverse_scale, 0, high) as f32 - v;
            sum + w * off * off
        })
    };
    let mut best = (error(plain), plain);
    for step in -10..=10 {
        let inverse_scale = (high as f32 + 0.1 * step as f32) / most;
        let (mut xq, mut qq) = (0f32, 0f32);
        for (&v, &w) in x.iter().zip(weights) {
            let q = nearest(v * inverse_scale, 0, high) as f32;
            xq += w * v * q;
            qq += w * q * q;
        }
        let d = xq * inverse(qq);
        let e = error(d);
        if d > 0.0 && e < best.0 {
            best = (e, d);
        }
    }
    best.1
}
