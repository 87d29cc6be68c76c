//! Weights `w[N, K]`, repacked once into panels.

use bytemuck::{Pod, Zeroable};
use rlx_ir::{DType, bail};

use super::format::{Format, with_format};
use super::gemm::decode_panel;
use super::{DEPTH, PANEL, PanelRow};
use crate::error::{Error, Result};
use crate::kernels::scratch::with_scratch;
use crate::simd::SimdLevel;

/// How the rows of a weight are arranged in panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrangement {
    /// Panel p holds rows 32 p to 32 p + 31.
    Plain,
    /// The weight is all gates, then equally many ups; panel 2 p holds gates 32 p to 32 p + 31, panel 2 p + 1 the ups
    /// that belong to them. A product then has half as many columns as the weight has rows.
    GateUp,
}

/// Dtype and size of a packed weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PackedShape {
    dtype: DType,
    rows: usize,
    depth: usize,
    arrangement: Arrangement,
    panel_bytes: usize,
}

impl PackedShape {
    /// The packed form of `w[rows, depth]`.
    ///
    /// Dtypes: f32, f16, bf16 and the block types that files hold weights in (not `q8_1`, `q8_k` and `q8_f32`, which are
    /// for activations). Errors: `UnsupportedOnDevice` for another dtype; `InvalidArgument` where `depth` is no multiple
    /// of the block, the rows of a gated weight are odd, or the size overflows.
    pub fn new(dtype: DType, rows: usize, depth: usize, arrangement: Arrangement) -> Result<Self> {
        let (block_depth, block_bytes) = with_format!(dtype,
            W => (W::K, size_of::<<W as Format>::Block>()),
            else bail!(UnsupportedOnDevice, "the CPU has no packed form of {dtype} weights"));
        if !depth.is_multiple_of(block_depth) {
            bail!(InvalidArgument, "a {dtype} weight of depth {depth}: expected a multiple of {block_depth}");
        }
        if arrangement == Arrangement::GateUp && !rows.is_multiple_of(2) {
            bail!(InvalidArgument, "a gated weight has {rows} rows: expected an even number");
        }
        let panel_bytes = (depth / block_depth).checked_mul(block_bytes);
        let Some(panel_bytes) = panel_bytes.filter(|b| b.checked_mul(rows / PANEL + 2).is_some()) else {
            bail!(InvalidArgument, "a {dtype} weight of [{rows}, {depth}] is too large");
        };
        Ok(Self { dtype, rows, depth, arrangement, panel_bytes })
    }

    /// The dtype of the source.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Rows of the weight: N.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements of a row: K.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// How its rows lie in panels.
    pub fn arrangement(&self) -> Arrangement {
        self.arrangement
    }

    /// Columns of a product: N, or N / 2 for gate and up.
    pub fn columns(&self) -> usize {
        self.rows / self.panels_per_unit()
    }

    /// Panels that make the same columns of a product.
    pub(crate) fn panels_per_unit(&self) -> usize {
        if self.arrangement == Arrangement::GateUp { 2 } else { 1 }
    }

    /// Number of panels.
    pub fn panels(&self) -> usize {
        self.columns().div_ceil(PANEL) * self.panels_per_unit()
    }

    /// Bytes of one panel: a multiple of 32 for every block type.
    pub fn panel_bytes(&self) -> usize {
        self.panel_bytes
    }

    /// Bytes of the whole.
    pub fn bytes(&self) -> usize {
        self.panels() * self.panel_bytes
    }

    /// The rows of the weight that panel `panel` holds: at most 32.
    pub fn panel_rows(&self, panel: usize) -> std::ops::Range<usize> {
        let per_unit = self.panels_per_unit();
        let first = panel / per_unit * PANEL;
        let start = panel % per_unit * self.columns();
        start + first.min(self.columns())..start + (first + PANEL).min(self.columns())
    }

    /// Panel and column of a row of the weight.
    fn place(&self, row: usize) -> (usize, usize) {
        let (part, column) = (row / self.columns(), row % self.columns());
        (column / PANEL * self.panels_per_unit() + part, column % PANEL)
    }

    /// Packs one panel.
    ///
    /// `source` is the bytes of [`panel_rows`](Self::panel_rows), in the source's dtype, little endian; `panel` is
    /// [`panel_bytes`](Self::panel_bytes) long and 4-byte aligned. Panels are independent: a caller may pack them in
    /// any order, on several threads, and drop source pages behind it. Errors: `InvalidArgument` for a wrong length
    /// or alignment.
    pub fn pack_panel(&self, panel: usize, source: &[u8], out: &mut [u8]) -> Result<()> {
        let rows = self.panel_rows(panel);
        let row_bytes = self.dtype.row_bytes(self.depth).unwrap_or(0);
        if panel >= self.panels() || source.len() != rows.len() * row_bytes || out.len() != self.panel_bytes {
            bail!(
                InvalidArgument,
                "packing panel {panel} of {} needs {} source bytes and {} result bytes, got {} and {}",
                self.panels(),
                rows.len() * row_bytes,
                self.panel_bytes,
                source.len(),
                out.len()
            );
        }
        with_format!(self.dtype, W => pack_blocks::<W>(source, row_bytes, blocks_mut::<W>(out)?), else ());
        Ok(())
    }
}

/// Packs some blocks of all columns, then the next: source and result of a round stay in the first-level cache.
fn pack_blocks<W: Format>(source: &[u8], row_bytes: usize, blocks: &mut [W::Block]) {
    let source_bytes = W::DTYPE.block_bytes();
    let columns = source.len().checked_div(row_bytes).unwrap_or(0);
    let round = 64usize.div_ceil(source_bytes);
    for (i, blocks) in blocks.chunks_mut(round).enumerate() {
        if columns < PANEL {
            blocks.fill(W::Block::zeroed());
        }
        for column in 0..columns {
            let at = column * row_bytes + i * round * source_bytes;
            for (source, block) in source[at..].chunks_exact(source_bytes).zip(blocks.iter_mut()) {
                W::pack(source, column, block);
            }
        }
    }
}

fn blocks_mut<W: Format>(bytes: &mut [u8]) -> Result<&mut [W::Block]> {
    bytemuck::try_cast_slice_mut(bytes).map_err(|e| bad_bytes(W::DTYPE, e))
}

fn bad_bytes(dtype: DType, e: bytemuck::PodCastError) -> Error {
    Error::new(rlx_ir::ErrorKind::InvalidArgument, format!("bytes of a packed {dtype} weight: {e}"))
}

/// A packed weight: its shape and its bytes, which live elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    shape: PackedShape,
    bytes: &'a [u8],
}

impl<'a> Packed<'a> {
    /// Looks at packed bytes.
    ///
    /// Errors: `InvalidArgument` where they are not [`PackedShape::bytes`] long or not 4-byte aligned (64 is best).
    pub fn new(shape: PackedShape, bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() != shape.bytes() || !bytes.as_ptr().addr().is_multiple_of(4) {
            bail!(
                InvalidArgument,
                "a packed {} weight of [{}, {}] takes {} aligned bytes, got {} at alignment {}",
                shape.dtype,
                shape.rows,
                shape.depth,
                shape.bytes(),
                bytes.len(),
                1u32 << bytes.as_ptr().addr().trailing_zeros().min(6)
            );
        }
        Ok(Self { shape, bytes })
    }

    /// Dtype and size.
    pub fn shape(&self) -> &PackedShape {
        &self.shape
    }

    /// The panels, one after the other.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn panel<W: Format>(&self, panel: usize) -> &'a [W::Block] {
        let bytes = &self.bytes[panel * self.shape.panel_bytes..][..self.shape.panel_bytes];
        // Never empty by mistake: `new` checked length and alignment for every format.
        bytemuck::try_cast_slice(bytes).unwrap_or_default()
    }
}

/// Packed weights of one shape, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct PackedStack<'a> {
    shape: PackedShape,
    count: usize,
    bytes: &'a [u8],
}

impl<'a> PackedStack<'a> {
    /// Looks at the bytes of `count` packed weights.
    ///
    /// Errors: as [`Packed::new`].
    pub fn new(shape: PackedShape, count: usize, bytes: &'a [u8]) -> Result<Self> {
        if Some(bytes.len()) != shape.bytes().checked_mul(count) {
            bail!(
                InvalidArgument,
                "{count} packed {} weights of [{}, {}] do not take {} bytes",
                shape.dtype,
                shape.rows,
                shape.depth,
                bytes.len()
            );
        }
        Ok(Self { shape, count, bytes })
    }

    /// Dtype and size of each.
    pub fn shape(&self) -> &PackedShape {
        &self.shape
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// One of them.
    ///
    /// Errors: `InvalidArgument` where there is none of that number.
    pub fn get(&self, index: usize) -> Result<Packed<'a>> {
        if index >= self.count {
            bail!(InvalidArgument, "weight {index} of a stack of {}", self.count);
        }
        let bytes = self.shape.bytes();
        Packed::new(self.shape, &self.bytes[index * bytes..][..bytes])
    }
}

/// One 64-byte line: a `Vec<Line>` is aligned storage for packed weights and scratch.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct Line([u8; 64]);

/// A packed weight that owns its bytes.
#[derive(Debug)]
pub struct PackedBuf {
    shape: PackedShape,
    lines: Vec<Line>,
}

impl PackedBuf {
    /// Packs a whole weight from its bytes.
    ///
    /// Shapes: `source` is `[rows, depth]` in the shape's dtype. Errors: `InvalidArgument` for a wrong length.
    pub fn pack(shape: PackedShape, source: &[u8]) -> Result<Self> {
        let row_bytes = shape.dtype.row_bytes(shape.depth).unwrap_or(0);
        if Some(source.len()) != shape.rows.checked_mul(row_bytes) {
            bail!(
                InvalidArgument,
                "a {} weight of [{}, {}] takes {} bytes, got {}",
                shape.dtype,
                shape.rows,
                shape.depth,
                shape.rows.saturating_mul(row_bytes),
                source.len()
            );
        }
        let mut lines = vec![Line([0; 64]); shape.bytes().div_ceil(64)];
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut lines);
        if shape.panel_bytes > 0 {
            for (p, panel) in bytes.chunks_exact_mut(shape.panel_bytes).take(shape.panels()).enumerate() {
                let rows = shape.panel_rows(p);
                shape.pack_panel(p, &source[rows.start * row_bytes..rows.end * row_bytes], panel)?;
            }
        }
        Ok(Self { shape, lines })
    }

    /// The packed weight.
    pub fn view(&self) -> Packed<'_> {
        Packed { shape: self.shape, bytes: &bytemuck::cast_slice(&self.lines)[..self.shape.bytes()] }
    }
}

/// Reads row `row` of the weight back: the decoded values, bit-equal to decoding the source.
///
/// Shapes: `out` is `[depth]`. Errors: `InvalidArgument` for a row that does not exist or a wrong length.
pub fn decode_row(level: SimdLevel, weight: &Packed<'_>, row: usize, out: &mut [f32]) -> Result<()> {
    let shape = weight.shape;
    if row >= shape.rows || out.len() != shape.depth {
        bail!(
            InvalidArgument,
            "row {row} into {} values of a weight of [{}, {}]",
            out.len(),
            shape.rows,
            shape.depth
        );
    }
    let (panel, column) = shape.place(row);
    with_scratch(DEPTH, |decoded: &mut [PanelRow]| {
        for (stretch, out) in out.chunks_mut(DEPTH).enumerate() {
            let decoded = decode_panel(level, weight, panel, stretch * DEPTH, &mut decoded[..out.len()]);
            for (out, row) in out.iter_mut().zip(decoded) {
                *out = row[column];
            }
        }
    });
    Ok(())
}
