//! The search for a scale and a minimum: `x = d * q + m`.

use super::search::{inverse, rounded, sums, usable};

/// Where the minimum may lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Minimum {
    /// Anywhere.
    Free,
    /// At most 0, for formats that store its magnitude.
    NotPositive,
}

/// A scale and a minimum above the base, and the squared error.
#[derive(Clone, Copy)]
struct Found {
    error: f32,
    d: f32,
    m: f32,
}

/// How many of the fan are improved.
const KEPT: usize = 6;

/// `(d, m)` for which `d * q + m` is nearest to `x` with integers `q` in `0..=high`; `d >= 0`.
///
/// `x` holds at most 32 values.
pub(super) fn affine(x: &[f32], weights: &[f32], high: i32, minimum: Minimum) -> (f32, f32) {
    let weights = usable(weights, &[1.0; 32]);
    let least = x.iter().copied().fold(f32::INFINITY, f32::min);
    let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let base = if minimum == Minimum::NotPositive { least.min(0.0) } else { least };
    let range = most - base;
    if inverse(range) == 0.0 || !range.is_finite() {
        return (0.0, base);
    }
    let search = Search::new(x, weights, high as f32, base, minimum);
    // Where in the integers the least and the largest value come to lie: beyond the ends, where they are clipped, or within,
    // where integers go unused. With more integers the error varies faster, and unused ones cost less.
    let (beyond, within, count) = match high {
        ..=7 => (1.2, 1.2, 9),
        8..=15 => (1.5, 1.5, 9),
        _ => (1.5, 3.0, 15),
    };
    let shifts = || (0..count).map(|i| (beyond + within) * i as f32 / (count - 1) as f32 - beyond);
    let plain = search.rated(range / search.high, 0.0);
    let mut kept = [plain; KEPT];
    kept[1..].fill(Found { error: f32::INFINITY, ..plain });
    for low in shifts() {
        for high in shifts() {
            let Some(mut found) = search.fit((search.high - high - low) / range, low) else { continue };
            for kept in &mut kept {
                if found.error < kept.error {
                    std::mem::swap(&mut found, kept);
                }
            }
        }
    }
    let improved =
        kept.into_iter().filter(|found| found.error.is_finite()).map(|found| search.improve(found));
    let best = improved.fold(plain, |best, found| if found.error < best.error { found } else { best });
    (best.d, base + best.m)
}

/// The weighted squared error of `d * q + m` with the best integers `q` in `0..=high`.
pub(super) fn affine_error(x: &[f32], weights: &[f32], high: i32, d: f32, m: f32) -> f32 {
    let (inverse_scale, high) = (inverse(d), high as f32);
    let [sum] = sums(x, weights, |v, w| {
        let off = d * rounded((v - m) * inverse_scale, 0.0, high) + m - v;
        [w * off * off]
    });
    sum
}

/// Values relative to a base, and the sums that do not depend on the integers.
struct Search<'a> {
    /// As many as there are weights.
    y: [f32; 32],
    weights: &'a [f32],
    high: f32,
    most_m: f32,
    sw: f32,
    sy: f32,
    syy: f32,
}

impl<'a> Search<'a> {
    fn new(x: &[f32], weights: &'a [f32], high: f32, base: f32, minimum: Minimum) -> Self {
        let mut y = [0f32; 32];
        for (y, x) in y.iter_mut().zip(x) {
            *y = x - base;
        }
        let most_m = if minimum == Minimum::NotPositive { -base } else { f32::INFINITY };
        let [sw, sy, syy] = sums(&y[..x.len()], weights, |y, w| [w, w * y, w * y * y]);
        Self { y, weights, high, most_m, sw, sy, syy }
    }

    fn y(&self) -> &[f32] {
        &self.y[..self.weights.len()]
    }

    /// The least-squares fit to the integers nearest to `y * inverse_scale + offset`, with the error for these integers.
    fn fit(&self, inverse_scale: f32, offset: f32) -> Option<Found> {
        let [sq, sqy, sqq] = sums(self.y(), self.weights, |y, w| {
            let q = rounded(y * inverse_scale + offset, 0.0, self.high);
            [w * q, w * q * y, w * q * q]
        });
        let determinant = self.sw * sqq - sq * sq;
        if determinant.is_nan() || determinant <= 0.0 {
            return None;
        }
        let mut d = (self.sw * sqy - self.sy * sq) / determinant;
        let mut m = (sqq * self.sy - sq * sqy) / determinant;
        if m > self.most_m {
            m = self.most_m;
            d = (sqy - m * sq) / sqq;
        }
        let error = self.syy + d * (d * sqq + 2.0 * (m * sq - sqy)) + m * (m * self.sw - 2.0 * self.sy);
        (d > 0.0 && d.is_finite() && m.is_finite()).then_some(Found { error, d, m })
    }

    /// With the error for the best integers.
    fn rated(&self, d: f32, m: f32) -> Found {
        Found { error: affine_error(self.y(), self.weights, self.high as i32, d, m), d, m }
    }

    /// Alternates rounding and fitting while that helps.
    fn improve(&self, found: Found) -> Found {
        let mut best = self.rated(found.d, found.m);
        for _ in 0..3 {
            let inverse_scale = inverse(best.d);
            let Some(found) = self.fit(inverse_scale, -best.m * inverse_scale) else { break };
            let found = self.rated(found.d, found.m);
            if found.error.is_nan() || found.error >= best.error {
                break;
            }
            best = found;
        }
        best
    }
}
