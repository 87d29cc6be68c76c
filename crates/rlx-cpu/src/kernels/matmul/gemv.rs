//! Products with few rows of the dtypes that are met most: weights are decoded in registers.

use std::ops::Range;

use rlx_ir::DType;

use super::PanelRow;
use super::format::{Direct, lanes_mut, with_direct};
use super::packed::Packed;
use crate::simd::{Kernel, Simd, SimdLevel};

/// The most rows that this is for.
pub(super) const MAX_ROWS: usize = 4;

/// Whether a level has this for a dtype.
pub(super) fn serves(level: SimdLevel, dtype: DType) -> bool {
    level.is_direct() && with_direct!(dtype, _W => true, else false)
}

/// Sums of `x.len()` (at most [`MAX_ROWS`]) rows with a range of panels; `sums` is `[panel][row]`.
pub(super) struct Gemv<'a> {
    pub weight: &'a Packed<'a>,
    pub panels: Range<usize>,
    pub x: &'a [&'a [f32]],
    pub sums: &'a mut [PanelRow],
}

impl Kernel for Gemv<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if const { S::DIRECT } {
            with_direct!(self.weight.shape().dtype(), W => self.with::<S, W>(s), else ());
        }
    }
}

impl Gemv<'_> {
    #[inline(always)]
    fn with<S: Simd, W: Direct>(mut self, s: S) {
        match *self.x {
            [a] => {
                // Two panels at once: four chains of dependent sums hide the latency of the multiply-add.
                while self.panels.len() >= 2 {
                    self.step::<S, W, 1, 2>(s, [a]);
                }
                if !self.panels.is_empty() {
                    self.step::<S, W, 1, 1>(s, [a]);
                }
            }
            [a, b] => self.all::<S, W, 2>(s, [a, b]),
            [a, b, c] => self.all::<S, W, 4>(s, [a, b, c, c]),
            [a, b, c, d] => self.all::<S, W, 4>(s, [a, b, c, d]),
            _ => {}
        }
    }

    #[inline(always)]
    fn all<S: Simd, W: Direct, const H: usize>(&mut self, s: S, x: [&[f32]; H]) {
        while !self.panels.is_empty() {
            self.step::<S, W, H, 1>(s, x);
        }
    }

    #[inline(always)]
    fn step<S: Simd, W: Direct, const H: usize, const P: usize>(&mut self, s: S, x: [&[f32]; H]) {
        let first = self.panels.start;
        let panels: [&[W::Block]; P] = std::array::from_fn(|p| self.weight.panel::<W>(first + p));
        self.panels.start += P;
        let mut acc = [[[s.zero(); 2]; P]; H];
        W::accumulate::<S, H, P>(s, panels, x, &mut acc);
        let rows = self.x.len();
        let sums = std::mem::take(&mut self.sums);
        let (now, later) = sums.split_at_mut(P * rows);
        self.sums = later;
        for p in 0..P {
            for h in 0..rows.min(H) {
                s.store(acc[h][p][0], lanes_mut(&mut now[p * rows + h], 0));
                s.store(acc[h][p][1], lanes_mut(&mut now[p * rows + h], 1));
            }
        }
    }
}
