//! `x · wᵀ` with an activation of block type `q8_f32`.
//!
//! For each group of elements of k that share a scale (32, or 16) the products of quants are added exactly in i32; then
//! `sum = fma(dot, dx * scale, sum)` and, for formats with a minimum, `sum = fma(total of x's quants, dx * minimum,
//! sum)`, group after group. Every number of rows takes this path, so a row has the same bits in every batch. A stretch of
//! a panel is unpacked into the first-level cache and multiplied by all rows.

use rlx_ir::bail;
use rlx_ir::quant::q8_f32;

use super::epilogue::{Element, Epilogue};
use super::format::{Codes, Meaning, lanes, lanes_mut};
use super::gemm::{Unpack, block_rows, meaning};
use super::packed::Packed;
use super::product::{Finish, Rows, check_epilogue, check_written, tile_size, unit_columns};
use super::{DEPTH, PANEL, PanelRow};
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
/// Dtypes: the weight is of any block type that is packed. Errors: `UnsupportedOnDevice` for another weight;
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
    let Some(meaning) = meaning(shape.dtype()) else {
        bail!(UnsupportedOnDevice, "matmul of a q8_f32 activation with a {} weight", shape.dtype());
    };
    let blocks = shape.depth() / q8_f32::ELEMS;
    let row_bytes = blocks * q8_f32::BYTES;
    x.check(row_bytes)?;
    check_epilogue(epilogue, shape, x.rows)?;
    check_written("the result", out.len(), [x.rows, shape.columns()], out_stride)?;
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
                        for (p, sums) in sums.chunks_exact_mut(here).enumerate() {
                            panel_sums(cpu, weight, unit * per_unit + p, meaning, (x, blocks), sums);
                        }
                        let finish = Finish {
                            epilogue,
                            columns: unit_columns(shape, unit),
                            sums: &mut *sums,
                            rows: 0..here,
                            first_row: first + tile.row(),
                            tile: &mut tile,
                        };
                        finish.run(cpu.level);
                    }
                });
            })?;
        }
        Ok(())
    })
}

/// The sums of some rows, of `blocks` each, with one panel.
fn panel_sums(
    cpu: Cpu<'_>,
    weight: &Packed<'_>,
    panel: usize,
    meaning: Meaning,
    (x, blocks): (&[Activation32], usize),
    sums: &mut [PanelRow],
) {
    sums.fill([0.0; PANEL]);
    let most = DEPTH / q8_f32::ELEMS;
    with_scratch(most.min(blocks), |codes: &mut [Codes]| {
        for first in (0..blocks).step_by(most) {
            let codes = &mut codes[..most.min(blocks - first)];
            cpu.level.dispatch(Unpack { weight, panel, from: first * q8_f32::ELEMS, out: &mut *codes });
            let x = &x[first..];
            cpu.level.dispatch(Multiply { codes, meaning, x, blocks, sums: &mut *sums });
        }
    });
}

/// Adds what a stretch of k contributes to all rows; block b of row r is `x[r * blocks + b]`.
struct Multiply<'a> {
    codes: &'a [Codes],
    meaning: Meaning,
    x: &'a [Activation32],
    blocks: usize,
    sums: &'a mut [PanelRow],
}

impl Kernel for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        match (self.meaning.group, self.meaning.minimum) {
            (32, false) => self.with::<S, 1, false>(s),
            (32, true) => self.with::<S, 1, true>(s),
            (_, false) => self.with::<S, 2, false>(s),
            (_, true) => self.with::<S, 2, true>(s),
        }
    }
}

impl Multiply<'_> {
    #[inline(always)]
    fn with<S: Simd, const GROUPS: usize, const MINIMUM: bool>(self, s: S) {
        for (b, block) in self.codes.iter().enumerate() {
            let x = self.x[b..].iter().step_by(self.blocks);
            for half in 0..2 {
                let codes: [S::I; 8] = array_of!(s.splat_i(0); 8, |t| s.load_i(lanes(&block.words[t], half)));
                let scales: [S::F; GROUPS] =
                    array_of!(s.zero(); GROUPS, |g| s.load(lanes(&block.scales[g], half)));
                let minimums: [S::F; GROUPS] =
                    array_of!(s.zero(); GROUPS, |g| s.load(lanes(&block.minimums[g], half)));
                for (x, sums) in x.clone().zip(self.sums.iter_mut()) {
                    let mut sum = s.load(lanes(sums, half));
                    let dx = s.splat(x.scale);
                    for g in 0..GROUPS {
                        let total = if GROUPS == 1 { x.totals[0] + x.totals[1] } else { x.totals[g] };
                        // Starting at minus the offset's share leaves the dot product with the true quants.
                        let mut dot = s.splat_i(-self.meaning.offset * total);
                        for t in g * (8 / GROUPS)..(g + 1) * (8 / GROUPS) {
                            dot = s.dot4(dot, codes[t], s.splat_i(x.words[t] as i32));
                        }
                        sum = s.fma(s.to_f(dot), s.mul(dx, scales[g]), sum);
                        if MINIMUM {
                            sum = s.fma(s.splat(total as f32), s.mul(dx, minimums[g]), sum);
                        }
                    }
                    s.store(sum, lanes_mut(sums, half));
                }
            }
        }
    }
}
