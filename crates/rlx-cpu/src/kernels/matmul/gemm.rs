//! Products by stretches of a panel: each is decoded into the first-level cache and multiplied by all rows of a block of x.

use rlx_ir::DType;

use super::epilogue::{Element, to_f32};
use super::format::{self, Codes, F32, Floats, Format, Meaning, unpack, with_block, with_float};
use super::packed::Packed;
use super::tile::{Start, multiply};
use super::{DEPTH, DepthRow, PanelRow};
use crate::kernels::scratch::with_scratch;
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
        let panel = decode_panel(level, weight, panel, from, &mut decoded[..count]);
        level.dispatch(Multiply { x, from: 0, panel, sums: &mut *sums, start });
    }
}

/// Rows `from..from + decoded.len()` of a panel as f32, in `decoded` unless they are f32 already.
///
/// `from` is a multiple of [`DEPTH`]; no more than `DEPTH` rows.
pub(super) fn decode_panel<'a>(
    level: SimdLevel,
    weight: &Packed<'a>,
    panel: usize,
    from: usize,
    decoded: &'a mut [PanelRow],
) -> &'a [PanelRow] {
    let dtype = weight.shape().dtype();
    if dtype == DType::F32 {
        return &weight.panel::<F32>(panel)[from..from + decoded.len()];
    }
    match meaning(dtype) {
        None => level.dispatch(DecodeFloats { weight, panel, from, out: &mut *decoded }),
        Some(meaning) => with_scratch(decoded.len() / 32, |codes: &mut [Codes]| {
            level.dispatch(Unpack { weight, panel, from, out: &mut *codes });
            level.dispatch(DecodeCodes { codes, meaning, out: &mut *decoded });
        }),
    }
    decoded
}

/// What the quants of a block type mean.
pub(super) fn meaning(dtype: DType) -> Option<Meaning> {
    with_block!(dtype, W => Some(Meaning::of::<W>()), else None)
}

/// Decodes rows of a panel of a float dtype.
struct DecodeFloats<'a> {
    weight: &'a Packed<'a>,
    panel: usize,
    from: usize,
    out: &'a mut [PanelRow],
}

impl Kernel for DecodeFloats<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        with_float!(self.weight.shape().dtype(), W => {
            W::decode(s, &self.weight.panel::<W>(self.panel)[self.from..][..self.out.len()], self.out);
        }, else ());
    }
}

/// Unpacks rows `from..from + 32 * out.len()` of a panel of a block type.
pub(super) struct Unpack<'a> {
    pub weight: &'a Packed<'a>,
    pub panel: usize,
    pub from: usize,
    pub out: &'a mut [Codes],
}

impl Kernel for Unpack<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        with_block!(self.weight.shape().dtype(), W => {
            let blocks = self.weight.panel::<W>(self.panel);
            let first = self.from / W::K;
            unpack::<S, W>(s, &blocks[first..first + 32 * self.out.len() / W::K], self.out);
        }, else ());
    }
}

struct DecodeCodes<'a> {
    codes: &'a [Codes],
    meaning: Meaning,
    out: &'a mut [PanelRow],
}

impl Kernel for DecodeCodes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        format::decode(s, self.codes, self.meaning, self.out);
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
