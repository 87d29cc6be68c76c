//! Sums over the elements of a group for all its points, from tables of their halves.

use super::envelope::Line;
use super::points::Points;
use crate::quant::search;

/// The part of each sum that half of a group's elements adds, by the half of the code that says their levels. Codes that
/// no point has mean nothing.
struct Half {
    b: [f32; 256],
    c: [f32; 256],
    /// The least product of weight, magnitude and level: half of what the cheapest wrong sign takes from `b`.
    flip: [f32; 256],
    /// The sum of the weights.
    total: f32,
}

impl Half {
    /// Of elements with the weighted magnitudes (or values) `a`: 4 elements of 4 levels each, or 2 of 16.
    fn new(a: &[f32], weights: &[f32], levels: &[f32]) -> Self {
        let total = weights.iter().sum();
        let (a, weights) = (a.split_at(a.len() / 2), weights.split_at(weights.len() / 2));
        let (low, high) = (Quarter::new(a.0, weights.0, levels), Quarter::new(a.1, weights.1, levels));
        let mut half = Self { b: [0.0; 256], c: [0.0; 256], flip: [0.0; 256], total };
        let rows = half
            .b
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(half.c.as_chunks_mut().0)
            .zip(half.flip.as_chunks_mut().0);
        for (i, ((b, c), flip)) in rows.enumerate() {
            *b = low.b.map(|v| v + high.b[i]);
            *c = low.c.map(|v| v + high.c[i]);
            *flip = low.flip.map(|v| v.min(high.flip[i]));
        }
        half
    }

    /// `value` of each code's `b` and `c`.
    fn map<T: Copy + Default>(&self, value: impl Fn(f32, f32) -> T) -> [T; 256] {
        let mut out = [T::default(); 256];
        for ((out, &b), &c) in out.iter_mut().zip(&self.b).zip(&self.c) {
            *out = value(b, c);
        }
        out
    }
}

/// The same for a quarter of a group's elements: 2 elements or 1.
struct Quarter {
    b: [f32; 16],
    c: [f32; 16],
    flip: [f32; 16],
}

impl Quarter {
    fn new(a: &[f32], weights: &[f32], levels: &[f32]) -> Self {
        let bits = 4 / a.len();
        let mut quarter = Self { b: [0.0; 16], c: [0.0; 16], flip: [f32::INFINITY; 16] };
        for (i, (&a, &w)) in a.iter().zip(weights).enumerate() {
            for code in 0..16 {
                let level = code >> (i * bits) & ((1 << bits) - 1);
                let v = levels.get(level).copied().unwrap_or(0.0);
                quarter.b[code] += a * v;
                quarter.c[code] += w * v * v;
                quarter.flip[code] = quarter.flip[code].min(a * v);
            }
        }
        quarter
    }
}

/// The sums of a group.
pub(super) struct Tables {
    low: Half,
    high: Half,
    /// The weighted sum of the elements' squares.
    energy: f32,
}

fn halves(code: u16) -> (usize, usize) {
    (usize::from(code & 255), usize::from(code >> 8))
}

impl Tables {
    /// Of points that are magnitudes.
    pub fn new(x: &[f32], weights: &[f32], levels: &[f32]) -> Self {
        Self::with(x, weights, levels, f32::abs)
    }

    /// Of points that have signs.
    pub fn signed(x: &[f32], weights: &[f32], levels: &[f32]) -> Self {
        Self::with(x, weights, levels, |v| v)
    }

    fn with(x: &[f32], weights: &[f32], levels: &[f32], value: impl Fn(f32) -> f32) -> Self {
        let n = x.len();
        let mut a = [0f32; 8];
        for ((a, &v), &w) in a.iter_mut().zip(x).zip(weights) {
            *a = w * value(v);
        }
        let half = |part: std::ops::Range<usize>| Half::new(&a[part.clone()], &weights[part], levels);
        let energy = x.iter().zip(weights).map(|(v, w)| w * v * v).sum();
        Self { low: half(0..n / 2), high: half(n / 2..n), energy }
    }

    /// The sums of a point; with `flip`, where the element for which that costs least has the wrong sign.
    pub fn line(&self, code: u16, flip: bool) -> Line {
        let (low, high) = halves(code);
        let mut b = self.low.b[low] + self.high.b[high];
        if flip {
            b -= 2.0 * self.low.flip[low].min(self.high.flip[high]);
        }
        Line::new(b, self.low.c[low] + self.high.c[high])
    }

    /// Passes each point's code, the interval of its `c`, and how good it is among those of the interval: half of what it
    /// takes from the error, with the scale that brings the interval's `c` to the squares of the elements, over this scale.
    pub fn each(&self, points: &Points, flip: bool, mut each: impl FnMut(u16, usize, f32)) {
        let intervals = &points.intervals;
        let total = self.low.total + self.high.total;
        let inverse = search::inverse(total);
        let scale = (self.energy * inverse).sqrt();
        let half_scales = intervals.half_scales.map(|half| half * scale);
        let steps = |half: &Half| {
            let (start, factor) = (half.total * intervals.least, inverse * intervals.steps_per_unit);
            half.map(|b, c| (b, c, ((c - start) * factor) as i32 as u16))
        };
        let (low, high) = (steps(&self.low), steps(&self.high));
        for run in &points.runs {
            let code = usize::from(run.high);
            let (b, c, step) = high[code];
            let most = if flip { self.high.flip[code] } else { 0.0 };
            for &code in run.codes {
                let low_code = usize::from(code & 255);
                let part = low[low_code];
                let interval = intervals.find(part.2, step);
                let mut b = part.0 + b;
                if flip {
                    b -= 2.0 * self.low.flip[low_code].min(most);
                }
                each(code, interval, b - half_scales[interval] * (part.1 + c));
            }
        }
    }

    /// The best point for a scale, and its number.
    pub fn best(&self, points: &Points, scale: f32, flip: bool) -> (Line, u16) {
        let of = |half: &Half| half.map(|b, c| Line::new(b, c).error(scale));
        let (low, high) = (of(&self.low), of(&self.high));
        let least_low =
            points.low.iter().fold(f32::INFINITY, |least, &code| low[usize::from(code)].min(least));
        let mut best = (f32::INFINITY, 0);
        for run in &points.runs {
            let part = high[usize::from(run.high)];
            if part + least_low >= best.0 {
                continue;
            }
            let flip_high = 4.0 * scale * self.high.flip[usize::from(run.high)];
            for (i, &code) in run.codes.iter().enumerate() {
                let code = usize::from(code & 255);
                let mut error = low[code] + part;
                if flip {
                    error += flip_high.min(4.0 * scale * self.low.flip[code]);
                }
                if error < best.0 {
                    best = (error, run.first + i);
                }
            }
        }
        (self.line(points.codes[best.1], flip), best.1 as u16)
    }
}

/// The element of a point for which a wrong sign costs least.
pub(super) fn cheapest(x: &[f32], weights: &[f32], levels: &[f32], code: u16) -> usize {
    let bits = 16 / x.len();
    let cost = |i: usize| {
        let level = usize::from(code >> (i * bits)) & ((1 << bits) - 1);
        weights[i] * x[i].abs() * levels[level]
    };
    (1..x.len()).fold(0, |best, i| if cost(i) < cost(best) { i } else { best })
}
