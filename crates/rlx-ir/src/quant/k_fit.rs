//! The search of the two-level formats with minimums (Q2_K, Q4_K, Q5_K): `x = (d * scale) * q - dmin * minimum`, with a
//! small integer scale and minimum for each of `N` sub-blocks.

use half::f16;

use super::affine::{Minimum, affine, affine_error};
use super::search;

/// Scales and minimums of one block, and the f16 steps that they count in.
pub(super) struct Fit<const N: usize> {
    pub(super) d: f32,
    pub(super) dmin: f32,
    pub(super) scales: [u8; N],
    pub(super) minimums: [u8; N],
}

impl<const N: usize> Fit<N> {
    /// The fit with quants in `0..=high` and scales and minimums in `0..=steps`.
    pub(super) fn search(x: &[f32; 256], weights: &[f32; 256], high: i32, steps: i32) -> Self {
        let part = |j: usize| 256 / N * j..256 / N * (j + 1);
        let fits: [(f32, f32); N] =
            std::array::from_fn(|j| affine(&x[part(j)], &weights[part(j)], high, Minimum::NotPositive));
        let totals: [f32; N] = std::array::from_fn(|j| weights[part(j)].iter().sum());
        let stored = |step: f32| f16::from_f32(step).to_f32();
        let d = stored(search::positive(&fits.map(|(d, _)| d), &totals, steps));
        let dmin = stored(search::positive(&fits.map(|(_, m)| -m), &totals, steps));
        let pairs: [(u8, u8); N] = std::array::from_fn(|j| {
            let error = |scale: i32, minimum: i32| {
                let (scale, minimum) = (d * scale as f32, dmin * minimum as f32);
                affine_error(&x[part(j)], &weights[part(j)], high, scale, -minimum)
            };
            let round = |v: f32, step: f32| search::nearest(v * search::inverse(step), 0, steps);
            let (scale, minimum) = (round(fits[j].0, d), round(-fits[j].1, dmin));
            // Rounding the two alone does not give the best pair: try the neighbours.
            let mut best = (error(scale, minimum), scale, minimum);
            for scale in (scale - 1).max(0)..=(scale + 1).min(steps) {
                for minimum in (minimum - 1).max(0)..=(minimum + 1).min(steps) {
                    let e = error(scale, minimum);
                    if e < best.0 {
                        best = (e, scale, minimum);
                    }
                }
            }
            (best.1 as u8, best.2 as u8)
        });
        Self { d, dmin, scales: pairs.map(|(scale, _)| scale), minimums: pairs.map(|(_, minimum)| minimum) }
    }

    /// The quants of all elements.
    pub(super) fn quants(&self, x: &[f32; 256], high: i32) -> [u8; 256] {
        std::array::from_fn(|i| {
            let j = i / (256 / N);
            let scale = self.d * f32::from(self.scales[j]);
            let minimum = self.dmin * f32::from(self.minimums[j]);
            search::nearest((x[i] + minimum) * search::inverse(scale), 0, high) as u8
        })
    }
}
