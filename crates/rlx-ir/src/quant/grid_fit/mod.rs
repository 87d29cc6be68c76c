//! The search that encodes the grid formats: scales, points and signs that give the least weighted squared error.
//!
//! With the scale `s` of a sub-block, a point adds `s^2 c - 2 s b` to the error, where `c` is the weighted sum of its squared
//! values and `b` that of its products with the elements. Over all points of a group the least of these is the lower
//! envelope of lines in `s` (after division by `s`), so that one [`Envelope`] per sub-block answers for every scale what
//! its best points cost, and the search over the scales chooses no points. These come last: all are tried at the final
//! scales.

mod envelope;
mod points;
mod tables;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use envelope::{Envelope, Line};
use half::f16;
use points::Points;
use tables::Tables;

use super::search;

/// What the search has to know of a format.
pub(super) struct Scheme {
    /// The points, as indices of their elements' levels.
    pub codes: &'static [u16],
    /// The values of the levels; one list for each value of a shift.
    pub levels: &'static [&'static [f32]],
    /// Elements of a point: 8 or 4.
    pub group_elems: usize,
    /// Elements that share a scale.
    pub sub_elems: usize,
    /// The scale of a sub-block over `d`, by the number that is stored. Rising.
    pub multipliers: &'static [f32],
    /// Where signs and shifts come from.
    pub signs: Signs,
}

/// Where a format has its signs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Signs {
    /// A bit for each element.
    Free,
    /// A bit for each element, an even number of minus signs in 8.
    Even,
    /// The points have signs; a group chooses its list of levels.
    InPointsShiftedByGroup,
    /// The points have signs; the groups of a sub-block have one list of levels.
    InPointsShiftedBySubBlock,
}

/// The values of ternary points with a shift of 1/8 and of -1/8.
pub(super) const SHIFTED: [&[f32]; 2] = [&[-0.875, 0.125, 1.125], &[-1.125, -0.125, 0.875]];

/// `(0.5 + i) * unit`.
pub(super) const fn halves(unit: f32) -> [f32; 16] {
    let mut multipliers = [0.0; 16];
    let mut i = 0;
    while i < multipliers.len() {
        multipliers[i] = (0.5 + i as f32) * unit;
        i += 1;
    }
    multipliers
}

/// `1 + 2 i`.
pub(super) const fn odds<const N: usize>() -> [f32; N] {
    let mut multipliers = [0.0; N];
    let mut i = 0;
    while i < multipliers.len() {
        multipliers[i] = (1 + 2 * i) as f32;
        i += 1;
    }
    multipliers
}

/// The `d` that are tried, in sixty-fourths of that with which the largest scale has the largest multiplier.
const STEPS: RangeInclusive<u8> = 42..=84;

/// An encoded block before its fields are packed.
#[derive(Clone, Copy)]
pub(super) struct Fit {
    /// The scale of scales, as an f16 holds it.
    pub d: f32,
    /// The number of each sub-block's multiplier.
    pub scales: [u8; 16],
    /// The point of each group.
    pub points: [u16; 64],
    /// The signs of each 8 elements, 1 for minus.
    pub minus: [u8; 32],
    /// The list of levels of each 8 elements.
    pub levels: [u8; 32],
}

/// The scales of a block, and what they cost with the best points.
#[derive(Clone, Copy)]
struct Scales {
    error: f32,
    d: f32,
    /// The best `d` for the points that were best.
    refit: f32,
    numbers: [u8; 16],
}

impl Scheme {
    /// The best encoding of a block.
    pub(super) fn fit(&self, x: &[f32; 256], weights: &[f32; 256]) -> Fit {
        let mut fit = Fit { d: 0.0, scales: [0; 16], points: [0; 64], minus: [0; 32], levels: [0; 32] };
        let peak = x.iter().fold(0f32, |m, v| m.max(v.abs()));
        let unit = search::inverse(peak);
        if unit == 0.0 {
            return fit;
        }
        let x = x.map(|v| v * unit);
        let weights = relative(weights);
        let stored = |d: f32| f16::from_f32(d * peak).to_f32() * unit;

        let points = Points::new(self.codes, self.levels);
        let subs = || x.chunks_exact(self.sub_elems).zip(weights.chunks_exact(self.sub_elems));
        let envelopes: Vec<Envelope> = subs().map(|(x, w)| self.envelope(&points, x, w)).collect();
        let Some(scales) = self.scales(&envelopes, stored) else { return fit };
        if !scales.d.is_finite() {
            fit.d = scales.d;
            return fit;
        }
        fit.scales = scales.numbers;

        let refit = self.choose_all(&points, &x, &weights, scales.d, &mut fit);
        fit.d = scales.d;
        let d = stored(refit.b * search::inverse(refit.c));
        if refit.error(d) < refit.error(fit.d) {
            self.choose_all(&points, &x, &weights, d, &mut fit);
            fit.d = d;
        }
        fit.d *= peak;
        fit
    }

    /// Chooses the points of all sub-blocks, and returns what they cost as a function of `d`.
    fn choose_all(
        &self,
        points: &Points,
        x: &[f32; 256],
        weights: &[f32; 256],
        d: f32,
        out: &mut Fit,
    ) -> Line {
        let n = self.sub_elems;
        let mut sum = Line::default();
        for (j, (x, w)) in x.chunks_exact(n).zip(weights.chunks_exact(n)).enumerate() {
            let m = self.multipliers[usize::from(out.scales[j])];
            let chosen = self.choose(points, x, w, d * m, j * n, out);
            sum.add(Line::new(m * chosen.b, m * m * chosen.c));
        }
        sum
    }

    /// What the best points of a sub-block cost, for every scale.
    fn envelope(&self, points: &Points, x: &[f32], weights: &[f32]) -> Envelope {
        let n = self.group_elems;
        let groups = || x.chunks_exact(n).zip(weights.chunks_exact(n));
        match self.signs {
            Signs::Free => Envelope::sum(
                groups().map(|(x, w)| Envelope::of([&Tables::new(x, w, self.levels[0])], points, false)),
            ),
            Signs::Even => {
                let eights = x.chunks_exact(8).zip(weights.chunks_exact(8));
                Envelope::sum(eights.map(|(x, w)| self.even_envelope(points, x, w)))
            }
            Signs::InPointsShiftedByGroup => Envelope::sum(groups().map(|(x, w)| {
                let tables = [0, 1].map(|list| Tables::signed(x, w, self.levels[list]));
                Envelope::of(tables.each_ref(), points, false)
            })),
            Signs::InPointsShiftedBySubBlock => {
                Envelope::least([0, 1].map(|list| {
                    Envelope::sum(groups().map(|(x, w)| {
                        Envelope::of([&Tables::signed(x, w, self.levels[list])], points, false)
                    }))
                }))
            }
        }
    }

    /// Of 8 elements whose minus signs must be even in number.
    fn even_envelope(&self, points: &Points, x: &[f32], weights: &[f32]) -> Envelope {
        let n = self.group_elems;
        let odd = minus_signs(x).count_ones() % 2 == 1;
        let tables = |i: usize| Tables::new(&x[i..i + n], &weights[i..i + n], self.levels[0]);
        if n == 8 {
            return Envelope::of([&tables(0)], points, odd);
        }
        let tables = [tables(0), tables(n)];
        let both =
            |flip: [bool; 2]| Envelope::sum([0, 1].map(|i| Envelope::of([&tables[i]], points, flip[i])));
        if odd { Envelope::least([both([true, false]), both([false, true])]) } else { both([false, false]) }
    }

    /// The best scales; `None` where every value of weight is 0. `d` is infinite where an f16 cannot hold it.
    fn scales(&self, envelopes: &[Envelope], stored: impl Fn(f32) -> f32) -> Option<Scales> {
        let mut targets = [0f32; 16];
        for (target, envelope) in targets.iter_mut().zip(envelopes) {
            *target = envelope.best_scale();
        }
        let largest = targets.iter().copied().fold(0f32, f32::max);
        let last = self.multipliers.len() - 1;
        let most = largest / self.multipliers[last];
        if most == 0.0 {
            return None;
        }
        if !stored(most).is_finite() {
            return Some(Scales { error: 0.0, d: stored(most), refit: most, numbers: [0; 16] });
        }
        let mut best: Option<Scales> = None;
        let mut consider = |d: f32| {
            let d = stored(d);
            let scales = self.numbers(envelopes, &targets, if d.is_finite() { d } else { stored(most) }, 1);
            if best.is_none_or(|best| scales.error < best.error) {
                best = Some(scales);
            }
            scales
        };
        for step in STEPS {
            let scales = consider(most * f32::from(step) / 64.0);
            if stored(scales.refit) != scales.d {
                consider(scales.refit);
            }
        }
        // An f16 has few steps below its normal numbers: there a larger `d` with smaller multipliers can be nearer.
        if (stored(most) - most).abs() > most * 0.001 {
            for m in &self.multipliers[..last] {
                consider(largest / m);
            }
        }
        let mut best = best?;
        let mut d = best.d;
        for _ in 0..2 {
            let scales = self.numbers(envelopes, &targets, d, self.multipliers.len());
            if scales.error > best.error {
                break;
            }
            best = scales;
            d = stored(scales.refit);
        }
        Some(best)
    }

    /// The best multiplier of each sub-block for this `d`, at most `reach` away from the scale that is the best of all.
    fn numbers(&self, envelopes: &[Envelope], targets: &[f32; 16], d: f32, reach: usize) -> Scales {
        let (first, step) = (self.multipliers[0], self.multipliers[1] - self.multipliers[0]);
        let inverse = search::inverse(d * step);
        let mut numbers = [0; 16];
        let (mut error, mut b, mut c) = (0f32, 0f32, 0f32);
        for ((number, envelope), target) in numbers.iter_mut().zip(envelopes).zip(targets) {
            let below = (target * inverse - first / step) as usize;
            let below = below.min(self.multipliers.len() - 1);
            let near = below.saturating_sub(reach)..self.multipliers.len().min(below + 2 + reach);
            let mut best = (f32::INFINITY, 0.0, Line::default());
            let mut lines = envelope.rising(d * self.multipliers[near.start]);
            for i in near {
                let m = self.multipliers[i];
                let line = lines.at(d * m);
                let e = line.error(d * m);
                if e < best.0 {
                    best = (e, m, line);
                    *number = i as u8;
                }
            }
            let (e, m, line) = best;
            error += e;
            b += m * line.b;
            c += m * m * line.c;
        }
        Scales { error, d, refit: b * search::inverse(c), numbers }
    }

    /// Chooses the points of a sub-block that begins at element `start`, for the scale `scale`.
    fn choose(
        &self,
        points: &Points,
        x: &[f32],
        weights: &[f32],
        scale: f32,
        start: usize,
        out: &mut Fit,
    ) -> Line {
        let n = self.group_elems;
        let groups = || x.chunks_exact(n).zip(weights.chunks_exact(n)).enumerate();
        let mut sum = Line::default();
        match self.signs {
            Signs::Free => {
                for (g, (x, w)) in groups() {
                    let (line, point) = Tables::new(x, w, self.levels[0]).best(points, scale, false);
                    out.points[start / n + g] = point;
                    sum.add(line);
                }
                for (minus, x) in out.minus[start / 8..].iter_mut().zip(x.chunks_exact(8)) {
                    *minus = minus_signs(x);
                }
            }
            Signs::Even => {
                for (i, (x, w)) in x.chunks_exact(8).zip(weights.chunks_exact(8)).enumerate() {
                    let at = start + 8 * i;
                    sum.add(self.choose_even(points, x, w, scale, at, out));
                }
            }
            Signs::InPointsShiftedByGroup => {
                for (g, (x, w)) in groups() {
                    let best = [0, 1]
                        .map(|level| Tables::signed(x, w, self.levels[level]).best(points, scale, false));
                    let level = usize::from(best[1].0.error(scale) < best[0].0.error(scale));
                    out.levels[start / 8 + g] = level as u8;
                    out.points[start / 8 + g] = best[level].1;
                    sum.add(best[level].0);
                }
            }
            Signs::InPointsShiftedBySubBlock => {
                let mut best = f32::INFINITY;
                for level in [0, 1] {
                    let mut numbers = [0; 4];
                    let mut line = Line::default();
                    for (g, (x, w)) in groups() {
                        let (l, number) = Tables::signed(x, w, self.levels[level]).best(points, scale, false);
                        numbers[g] = number;
                        line.add(l);
                    }
                    if line.error(scale) < best {
                        best = line.error(scale);
                        sum = line;
                        out.points[start / 8..start / 8 + 4].copy_from_slice(&numbers);
                        out.levels[start / 8..start / 8 + 4].fill(level as u8);
                    }
                }
            }
        }
        sum
    }

    /// Chooses the points and signs of 8 elements whose minus signs must be even in number.
    fn choose_even(
        &self,
        points: &Points,
        x: &[f32],
        weights: &[f32],
        scale: f32,
        at: usize,
        out: &mut Fit,
    ) -> Line {
        let n = self.group_elems;
        let mut minus = minus_signs(x);
        let tables =
            x.chunks_exact(n).zip(weights.chunks_exact(n)).map(|(x, w)| Tables::new(x, w, self.levels[0]));
        let tables: Vec<Tables> = tables.collect();
        let plain: Vec<(Line, u16)> = tables.iter().map(|t| t.best(points, scale, false)).collect();
        let mut chosen = plain.clone();
        if minus.count_ones() % 2 == 1 {
            // One element gets the wrong sign, in the group where that costs least.
            let flipped: Vec<(Line, u16)> = tables.iter().map(|t| t.best(points, scale, true)).collect();
            let cost = |g: usize| flipped[g].0.error(scale) - plain[g].0.error(scale);
            let g = (1..tables.len()).fold(0, |best, g| if cost(g) < cost(best) { g } else { best });
            chosen[g] = flipped[g];
            let own = g * n..(g + 1) * n;
            let element = tables::cheapest(
                &x[own.clone()],
                &weights[own],
                self.levels[0],
                self.codes[usize::from(chosen[g].1)],
            );
            minus ^= 1 << (g * n + element);
        }
        out.minus[at / 8] = minus;
        let mut sum = Line::default();
        for (g, (line, point)) in chosen.into_iter().enumerate() {
            out.points[at / n + g] = point;
            sum.add(line);
        }
        sum
    }
}

/// Weights of at most 1. Elements of no importance keep a little, so that they do not become anything at all where that
/// costs nothing.
fn relative(weights: &[f32; 256]) -> [f32; 256] {
    let heaviest = weights.iter().copied().fold(0f32, f32::max);
    if heaviest == 0.0 {
        return [1.0; 256];
    }
    let weights = weights.map(|w| w / heaviest);
    let floor = 1e-3 / 256.0 * weights.iter().sum::<f32>();
    weights.map(|w| w.max(floor))
}

fn minus_signs(x: &[f32]) -> u8 {
    x.iter().enumerate().fold(0, |bits, (i, &v)| bits | u8::from(v < 0.0) << i)
}
