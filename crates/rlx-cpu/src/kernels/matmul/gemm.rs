//! Products with many rows: a panel is decoded a stretch at a time into the first-level cache and multiplied by all
//! rows of a block of x.

use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use super::epilogue::{Element, to_f32};
use super::format::{Bf16, F16, F32, Format, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q6K, Q8_0};
use super::packed::{Packed, with_format};
use super::tile::{Start, multiply};
use super::{DEPTH, DepthRow, PanelRow};
use crate::simd::{Kernel, Simd, SimdLevel};

/// Bytes of a block of x: it stays in the second-level cache while panels pass.
const BLOCK_BYTES: usize = 1 << 20;

/// Rows of x that are multiplied together.
pub(super) fn block_rows(depth: usize) -> usize {
    (BLOCK_BYTES / size_of::<DepthRow>() / depth.div_ceil(DEPTH).max(1)).clamp(48, 240) / 12 * 12
}

/// Copies rows of x as f32 into stretches: `out[i]` is stretch `(first + i) / rows` of row `(first + i) % rows`.
pub(super) struct PackRows<'a, T> {
    pub x: &'a [T],
    pub stride: usize,
    pub rows: usize,
    pub depth: usize,
    pub first: usize,
    pub out: &'a mut [DepthRow],
}

impl<T: Element> Kernel for PackRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (i, out) in self.out.iter_mut().enumerate() {
            let (stretch, row) = ((self.first + i) / self.rows, (self.first + i) % self.rows);
            let (from, to) = (stretch * DEPTH, self.depth.min((stretch + 1) * DEPTH));
            to_f32(s, &self.x[row * self.stride..][from..to], &mut out[..to - from]);
        }
    }
}

/// `sums[r]` over all k for the rows of a packed block of x (`x[stretch][row]`, `rows` long each) and one panel.
///
/// `first` is the first row; `decoded` is scratch of [`DEPTH`] rows.
pub(super) fn panel_sums(
    level: SimdLevel,
    weight: &Packed<'_>,
    panel: usize,
    x: &[DepthRow],
    (rows, first): (usize, usize),
    decoded: &mut [PanelRow],
    sums: &mut [PanelRow],
) {
    let depth = weight.shape().depth();
    if depth == 0 {
        sums.fill([0.0; super::PANEL]);
    }
    for (stretch, from) in (0..depth).step_by(DEPTH).enumerate() {
        let count = DEPTH.min(depth - from);
        let x = &x[stretch * rows + first..][..sums.len()];
        let start = if stretch == 0 { Start::Zero } else { Start::Running };
        let panel = if weight.shape().dtype() == DType::F32 {
            &weight.panel::<F32>(panel)[from..from + count]
        } else {
            level.dispatch(Decode { weight, panel, from, out: &mut decoded[..count] });
            &decoded[..count]
        };
        level.dispatch(Multiply { x, from: 0, panel, sums: &mut *sums, start });
    }
}

/// Decodes rows `from..from + out.len()` of a panel.
pub(super) struct Decode<'a> {
    pub weight: &'a Packed<'a>,
    pub panel: usize,
    pub from: usize,
    pub out: &'a mut [PanelRow],
}

impl Kernel for Decode<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        with_format!(self.weight.shape().dtype(), W => {
            let blocks = self.weight.panel::<W>(self.panel);
            W::decode(s, &blocks[self.from / W::K..][..self.out.len() / W::K], self.out);
        }, else ());
    }
}

/// [`multiply`] with all rows of `panel`, from column `from` of x.
pub(crate) struct Multiply<'a, const A: usize> {
    pub x: &'a [[f32; A]],
    pub from: usize,
    pub panel: &'a [PanelRow],
    pub sums: &'a mut [PanelRow],
    pub start: Start,
}

impl<const A: usize> Kernel for Multiply<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        multiply::<S, A>(s, self.x, self.from, self.panel, self.sums, self.start);
    }
}
