//! Products with few rows: weights are decoded in registers, straight from their panels for the dtypes that are met most, from
//! unpacked [`Codes`] for the other block types.

use std::ops::Range;

use rlx_ir::DType;

use super::format::{Codes, Direct, Meaning, lanes, lanes_mut, values_of, with_direct};
use super::gemm::Unpack;
use super::packed::Packed;
use super::{DEPTH, PANEL, PanelRow};
use crate::kernels::scratch::with_scratch;
use crate::simd::{Kernel, Simd, SimdLevel};

/// The most rows that this is for.
pub(super) const MAX_ROWS: usize = 4;

/// Whether panels of a dtype are decoded without unpacking.
pub(super) fn is_direct(dtype: DType) -> bool {
    with_direct!(dtype, _W => true, else false)
}

/// Sums of `x.len()` (at most [`MAX_ROWS`]) rows with one panel of a block type; `sums` has one for each row.
pub(super) fn panel_sums(
    level: SimdLevel,
    (weight, meaning): (&Packed<'_>, Meaning),
    panel: usize,
    x: &[&[f32]],
    sums: &mut [PanelRow],
) {
    sums.fill([0.0; PANEL]);
    let depth = weight.shape().depth();
    with_scratch(DEPTH.min(depth) / 32, |codes: &mut [Codes]| {
        for from in (0..depth).step_by(DEPTH) {
            let count = DEPTH.min(depth - from);
            let codes = &mut codes[..count / 32];
            level.dispatch(Unpack { weight, panel, from, out: &mut *codes });
            let part = |r: usize| x.get(r).map_or(&[][..], |x| &x[from..from + count]);
            let x = [part(0), part(1), part(2), part(3)];
            level.dispatch(FromCodes { codes, meaning, x, sums: &mut *sums });
        }
    });
}

/// Adds what a stretch of k contributes; x has as many rows as `sums`, the others are empty.
struct FromCodes<'a> {
    codes: &'a [Codes],
    meaning: Meaning,
    x: [&'a [f32]; MAX_ROWS],
    sums: &'a mut [PanelRow],
}

impl Kernel for FromCodes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        if const { S::DIRECT } {
            let [a, b, c, d] = self.x;
            let minimum = self.meaning.minimum;
            match (self.sums.len(), minimum) {
                (1, false) => self.with::<S, 1, false>(s, [a]),
                (1, true) => self.with::<S, 1, true>(s, [a]),
                (2, false) => self.with::<S, 2, false>(s, [a, b]),
                (2, true) => self.with::<S, 2, true>(s, [a, b]),
                (rows, _) => {
                    let x = [a, b, c, if rows == 4 { d } else { c }];
                    if minimum { self.with::<S, 4, true>(s, x) } else { self.with::<S, 4, false>(s, x) }
                }
            }
        }
    }
}

impl FromCodes<'_> {
    #[inline(always)]
    fn with<S: Simd, const H: usize, const MINIMUM: bool>(self, s: S, x: [&[f32]; H]) {
        let Self { codes, meaning, sums, .. } = self;
        let count = 32 * codes.len();
        let x = x.map(|x| &x[..count]);
        let last_group = 32 / meaning.group - 1;
        let offset = s.splat_i(meaning.offset);
        let mut acc = [[s.zero(); 2]; H];
        for h in 0..sums.len().min(H) {
            acc[h] = [s.load(lanes(&sums[h], 0)), s.load(lanes(&sums[h], 1))];
        }
        for (b, codes) in codes.iter().enumerate() {
            for t in 0..8 {
                let g = (t / 4).min(last_group);
                for half in 0..2 {
                    let w = values_of::<S, MINIMUM>(s, codes, (t, g, half), offset);
                    for i in 0..4 {
                        for h in 0..H {
                            acc[h][half] = s.fma(s.splat(x[h][32 * b + 4 * t + i]), w[i], acc[h][half]);
                        }
                    }
                }
            }
        }
        for h in 0..sums.len().min(H) {
            s.store(acc[h][0], lanes_mut(&mut sums[h], 0));
            s.store(acc[h][1], lanes_mut(&mut sums[h], 1));
        }
    }
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
