//! `x · wᵀ` with an activation of block type `q8_f32`.
//!
//! For each group of a block (32 elements of k, 16 for q6_k) the products of quants are added exactly in i32; then
//! `sum = fma(dot, dx * scale, sum)` and, for formats with a minimum, `sum = fma(total of x's quants, dx * minimum,
//! sum)`, group after group. Every number of rows takes this path, so a row has the same bits in every batch.

use std::ops::Range;

use rlx_ir::quant::{BlockType, q8_f32};
use rlx_ir::{DType, bail};

use super::epilogue::{Element, Epilogue};
use super::format::{Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q6K, Q8_0, Quantized, lanes, lanes_mut};
use super::gemm::block_rows;
use super::packed::Packed;
use super::product::{Finish, Rows, check_epilogue, check_matrix, tile_size, unit_columns};
use super::{PANEL, PanelRow};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::scratch::with_scratch;
use crate::pool::{chunks, tiles};
use crate::simd::{Kernel, Simd, array_of};

/// One block of x, unpacked.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Activation32 {
    scale: f32,
    /// Sums of the first and the last 16 quants.
    totals: [i32; 2],
    /// Four quants each.
    words: [u32; 8],
}

impl Activation32 {
    fn new(block: &[u8; q8_f32::BYTES]) -> Self {
        let quants = &block[q8_f32::QUANTS..];
        let total = |part: &[u8]| part.iter().map(|&q| i32::from(q as i8)).sum();
        let scale = &block[q8_f32::SCALE..];
        Self {
            scale: f32::from_le_bytes([scale[0], scale[1], scale[2], scale[3]]),
            totals: [total(&quants[..16]), total(&quants[16..])],
            words: std::array::from_fn(|i| {
                u32::from_le_bytes([quants[4 * i], quants[4 * i + 1], quants[4 * i + 2], quants[4 * i + 3]])
            }),
        }
    }
}

/// The product of a quantised activation with a packed block-quantised weight.
///
/// Shapes: `x` `[M, K]` in `q8_f32`, as bytes (`stride` counts bytes); the rest as in [`packed`](super::packed).
/// Dtypes: weight q8_0, q4_0, q4_1, q5_0, q5_1, q4_k or q6_k. Errors: `UnsupportedOnDevice` for another weight;
/// `InvalidArgument` where slices and sizes do not agree.
pub fn quantized<Y: Element>(
    cpu: Cpu<'_>,
    x: Rows<'_, u8>,
    weight: &Packed<'_>,
    epilogue: &Epilogue<'_, Y>,
    out: &mut [Y],
    out_stride: usize,
) -> Result<()> {
    let shape = weight.shape();
    if !shape.dtype().is_block() {
        bail!(UnsupportedOnDevice, "matmul of a q8_f32 activation with a {} weight", shape.dtype());
    }
    let blocks = shape.depth() / q8_f32::ELEMS;
    let row_bytes = blocks * q8_f32::BYTES;
    x.check(row_bytes)?;
    check_epilogue(epilogue, shape, x.rows)?;
    check_matrix("the result", out.len(), [x.rows, shape.columns()], out_stride)?;
    if x.rows == 0 || shape.columns() == 0 {
        return Ok(());
    }
    let most = block_rows(shape.depth());
    let height = x.rows.div_ceil(x.rows.div_ceil(most));
    let per_unit = shape.panels_per_unit();
    with_scratch(height * blocks, |unpacked: &mut [Activation32]| {
        for first in (0..x.rows).step_by(height) {
            let rows = height.min(x.rows - first);
            let unpacked = &mut unpacked[..rows * blocks];
            let rows_each = rows.div_ceil(cpu.parts(rows * row_bytes));
            chunks(cpu.pool, unpacked, (rows_each * blocks).max(1), |i, part| {
                for (r, part) in part.chunks_mut(blocks.max(1)).enumerate() {
                    let source = &x.data[(first + i * rows_each + r) * x.stride..][..row_bytes];
                    for (out, block) in part.iter_mut().zip(source.as_chunks().0) {
                        *out = Activation32::new(block);
                    }
                }
            })?;
            let (unpacked, rest) = (&*unpacked, &mut out[first * out_stride..]);
            let size = tile_size(cpu, shape, rows);
            tiles(cpu.pool, rest, [rows, shape.columns()], out_stride, size, |mut tile| {
                let here = tile.rows();
                let x = &unpacked[tile.row() * blocks..][..here * blocks];
                with_scratch(per_unit * here, |sums: &mut [PanelRow]| {
                    for unit in tile.col() / PANEL..(tile.col() + tile.cols()).div_ceil(PANEL) {
                        let panels = unit * per_unit..(unit + 1) * per_unit;
                        cpu.level.dispatch(Sums { weight, panels, x, blocks, sums: &mut *sums });
                        cpu.level.dispatch(Finish {
                            epilogue,
                            columns: unit_columns(shape, unit),
                            sums: &*sums,
                            rows: 0..here,
                            first_row: first + tile.row(),
                            tile: &mut tile,
                        });
                    }
                });
            })?;
        }
        Ok(())
    })
}

/// Sums `[panel][row]` of some rows with some panels.
struct Sums<'a> {
    weight: &'a Packed<'a>,
    panels: Range<usize>,
    x: &'a [Activation32],
    blocks: usize,
    sums: &'a mut [PanelRow],
}

impl Kernel for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        match self.weight.shape().dtype() {
            DType::Block(BlockType::Q8_0) => self.with::<S, Q8_0>(s),
            DType::Block(BlockType::Q4_0) => self.with::<S, Q4_0>(s),
            DType::Block(BlockType::Q4_1) => self.with::<S, Q4_1>(s),
            DType::Block(BlockType::Q5_0) => self.with::<S, Q5_0>(s),
            DType::Block(BlockType::Q5_1) => self.with::<S, Q5_1>(s),
            DType::Block(BlockType::Q4_K) => self.with::<S, Q4K>(s),
            DType::Block(BlockType::Q6_K) => self.with::<S, Q6K>(s),
            _ => {}
        }
    }
}

impl Sums<'_> {
    #[inline(always)]
    fn with<S: Simd, W: Quantized>(self, s: S) {
        self.sums.fill([0.0; PANEL]);
        let rows = self.sums.len() / self.panels.len().max(1);
        for (panel, sums) in self.panels.zip(self.sums.chunks_exact_mut(rows.max(1))) {
            for (b, block) in self.weight.panel::<W>(panel).iter().enumerate() {
                for part in 0..W::K / q8_f32::ELEMS {
                    let at = b * (W::K / q8_f32::ELEMS) + part;
                    let x = self.x[at..].iter().step_by(self.blocks);
                    for half in 0..2 {
                        multiply_block::<S, W>(s, block, part, half, x.clone(), sums);
                    }
                }
            }
        }
    }
}

/// Adds what 32 elements of k contribute to 16 columns of all rows.
#[inline(always)]
fn multiply_block<'a, S: Simd, W: Quantized>(
    s: S,
    block: &W::Block,
    part: usize,
    half: usize,
    x: impl Iterator<Item = &'a Activation32>,
    sums: &mut [PanelRow],
) {
    let codes: [S::I; 8] = array_of!(s.splat_i(0); 8, |t| W::codes(s, block, 8 * part + t, half));
    let groups = q8_f32::ELEMS / W::GROUP;
    let scales: [(S::F, S::F); 2] =
        array_of!((s.zero(), s.zero()); 2, |g| W::scales(s, block, groups * part + g.min(groups - 1), half));
    for (x, sums) in x.zip(sums) {
        let mut sum = s.load(lanes(sums, half));
        let dx = s.splat(x.scale);
        for g in 0..groups {
            let total = if groups == 1 { x.totals[0] + x.totals[1] } else { x.totals[g] };
            // Starting at minus the offset's share leaves the dot product with the true quants.
            let mut dot = s.splat_i(-W::OFFSET * total);
            for t in g * (8 / groups)..(g + 1) * (8 / groups) {
                dot = s.dot4(dot, codes[t], s.splat_i(x.words[t] as i32));
            }
            sum = s.fma(s.to_f(dot), s.mul(dx, scales[g].0), sum);
            if W::MINIMUM {
                sum = s.fma(s.splat(total as f32), s.mul(dx, scales[g].1), sum);
            }
        }
        s.store(sum, lanes_mut(sums, half));
    }
}
