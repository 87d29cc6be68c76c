//! Sums over the elements of a group for all its points, from tables of their halves.

use super::envelope::Line;

/// The part of each sum that half of a group's elements adds, by the half of the code that says their levels.
struct Half {
    b: [f32; 256],
    c: [f32; 256],
    /// The least product of weight, magnitude and level: half of what the cheapest wrong sign takes from `b`.
    flip: [f32; 256],
}

impl Half {
    /// Of elements with the weighted magnitudes (or values) `a`, whose levels take `bits` each.
    fn new(a: &[f32], weights: &[f32], levels: &[f32], bits: usize) -> Self {
        let mut half = Self { b: [0.0; 256], c: [0.0; 256], flip: [f32::INFINITY; 256] };
        let mut codes = [0u8; 81];
        let mut count = 1;
        for (i, (&a, &w)) in a.iter().zip(weights).enumerate() {
            // The level 0 comes last: it takes the place of the sums without this element.
            for (level, &v) in levels.iter().enumerate().rev() {
                for k in 0..count {
                    let from = usize::from(codes[k]);
                    let to = from | level << (i * bits);
                    half.b[to] = half.b[from] + a * v;
                    half.c[to] = half.c[from] + w * v * v;
                    half.flip[to] = half.flip[from].min(a * v);
                    codes[level * count + k] = to as u8;
                }
            }
            count *= levels.len();
        }
        half
    }
}

/// The sums of a group.
pub(super) struct Tables {
    low: Half,
    high: Half,
    /// Bounds of `c`.
    pub least: f32,
    pub most: f32,
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
        let bits = 16 / n;
        let total: f32 = weights.iter().sum();
        let squares = levels.iter().map(|v| v * v);
        Self {
            low: Half::new(&a[..n / 2], &weights[..n / 2], levels, bits),
            high: Half::new(&a[n / 2..n], &weights[n / 2..], levels, bits),
            least: total * squares.clone().fold(f32::INFINITY, f32::min),
            most: total * squares.fold(0f32, f32::max),
        }
    }

    /// The sums of a point; with `flip`, where the element for which that costs least has the wrong sign.
    pub fn line(&self, code: u16, flip: bool) -> Line {
        let (low, high) = (usize::from(code & 255), usize::from(code >> 8));
        let mut b = self.low.b[low] + self.high.b[high];
        if flip {
            b -= 2.0 * self.low.flip[low].min(self.high.flip[high]);
        }
        Line::new(b, self.low.c[low] + self.high.c[high])
    }

    /// The best point for a scale, and its number.
    pub fn best(&self, codes: &[u16], scale: f32, flip: bool) -> (Line, u16) {
        let mut best = (f32::INFINITY, Line::default(), 0);
        for (i, &code) in codes.iter().enumerate() {
            let line = self.line(code, flip);
            let error = line.error(scale);
            if error < best.0 {
                best = (error, line, i as u16);
            }
        }
        (best.1, best.2)
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
