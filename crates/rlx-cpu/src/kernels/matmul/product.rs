//! `x[M, K] · w[N, K]ᵀ` with a packed weight.

use std::ops::Range;

use rlx_ir::bail;

use super::epilogue::{Activate, Activation, Columns, Element, Epilogue, Residual, store_row};
use super::gemm::{PackRows, block_rows, meaning, panel_sums};
use super::gemv::{self, Gemv, MAX_ROWS};
use super::packed::{Packed, PackedShape};
use super::{Arrangement, DEPTH, DepthRow, PANEL, PanelRow};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::memory::Convert;
use crate::kernels::scratch::with_scratch;
use crate::pool::{TileMut, chunks, split, tiles};
use crate::simd::{Kernel, Simd, SimdLevel};

/// The rows of a left operand.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// Number of rows: M.
    pub rows: usize,
    /// Elements from row to row; 0 where all rows are one.
    pub stride: usize,
}

impl<'a, T> Rows<'a, T> {
    pub(super) fn skip(self, rows: usize) -> Self {
        Self { data: &self.data[rows * self.stride..], rows: self.rows - rows, ..self }
    }

    pub(super) fn check(&self, depth: usize) -> Result<()> {
        check_read("the left operand", self.data.len(), [self.rows, depth], self.stride)
    }
}

/// Refuses a matrix that does not fit the slice that it is read from. Its rows may overlap, as those of a broadcast do.
pub(super) fn check_read(what: &str, len: usize, [rows, cols]: [usize; 2], stride: usize) -> Result<()> {
    let needed = match rows.checked_sub(1) {
        None => Some(0),
        Some(before) => before.checked_mul(stride).and_then(|n| n.checked_add(cols)),
    };
    if needed.is_none_or(|n| n > len) {
        bail!(
            InvalidArgument,
            "matmul: {what} of [{rows}, {cols}] with stride {stride} does not fit {len} elements"
        );
    }
    Ok(())
}

/// Refuses a matrix that does not fit the slice that it is written to, or whose rows overlap.
pub(super) fn check_written(what: &str, len: usize, [rows, cols]: [usize; 2], stride: usize) -> Result<()> {
    if rows > 1 && stride < cols {
        bail!(InvalidArgument, "matmul: the rows of {what}, of {cols} elements, are {stride} elements apart");
    }
    check_read(what, len, [rows, cols], stride)
}

/// Checks what an epilogue refers to.
pub(super) fn check_epilogue<T>(epilogue: &Epilogue<'_, T>, shape: &PackedShape, rows: usize) -> Result<()> {
    if let Some(bias) = epilogue.bias
        && bias.len() != shape.rows()
    {
        bail!(InvalidArgument, "matmul: {} biases for {} rows of the weight", bias.len(), shape.rows());
    }
    if let Residual::From { data, stride } = epilogue.residual {
        check_read("the residual", data.len(), [rows, shape.columns()], stride)?;
    }
    Ok(())
}

/// The product with a packed weight, finished by an epilogue and rounded to the result's dtype.
///
/// Shapes: `x` `[M, K]`, `out` `[M, N]` (or `[M, N / 2]` for gate and up), its rows `out_stride` apart. Dtypes: x and
/// result f32, f16 or bf16, each; the weight any packed one, used as its decoded values. Numerics: see the
/// [module](super). Errors: `InvalidArgument` where slices and sizes do not agree.
pub fn packed<X: Element, Y: Element>(
    cpu: Cpu<'_>,
    x: Rows<'_, X>,
    weight: &Packed<'_>,
    epilogue: &Epilogue<'_, Y>,
    out: &mut [Y],
    out_stride: usize,
) -> Result<()> {
    let shape = weight.shape();
    x.check(shape.depth())?;
    check_epilogue(epilogue, shape, x.rows)?;
    check_written("the result", out.len(), [x.rows, shape.columns()], out_stride)?;
    if x.rows == 0 || shape.columns() == 0 {
        return Ok(());
    }
    if x.rows <= MAX_ROWS && cpu.level.is_direct() {
        few_rows(cpu, x, weight, epilogue, out, out_stride)
    } else {
        many_rows(cpu, x, weight, epilogue, out, out_stride)
    }
}

fn few_rows<X: Element, Y: Element>(
    cpu: Cpu<'_>,
    x: Rows<'_, X>,
    weight: &Packed<'_>,
    epilogue: &Epilogue<'_, Y>,
    out: &mut [Y],
    out_stride: usize,
) -> Result<()> {
    let (rows, depth) = (x.rows, weight.shape().depth());
    let source = |r: usize| &x.data[r * x.stride..][..depth];
    if X::as_f32(x.data).is_some() {
        let mut list: [&[f32]; MAX_ROWS] = [&[]; MAX_ROWS];
        for (r, row) in list.iter_mut().enumerate().take(rows) {
            *row = X::as_f32(source(r)).unwrap_or_default();
        }
        return gemv(cpu, &list[..rows], weight, epilogue, out, out_stride);
    }
    with_scratch(rows * depth, |scratch: &mut [f32]| {
        if depth > 0 {
            for (r, row) in scratch.chunks_exact_mut(depth).enumerate() {
                cpu.level.dispatch(Convert { x: source(r), out: row });
            }
        }
        let mut list: [&[f32]; MAX_ROWS] = [&[]; MAX_ROWS];
        for (r, row) in list.iter_mut().enumerate().take(rows) {
            *row = &scratch[r * depth..][..depth];
        }
        gemv(cpu, &list[..rows], weight, epilogue, out, out_stride)
    })
}

fn gemv<Y: Element>(
    cpu: Cpu<'_>,
    x: &[&[f32]],
    weight: &Packed<'_>,
    epilogue: &Epilogue<'_, Y>,
    out: &mut [Y],
    out_stride: usize,
) -> Result<()> {
    let shape = weight.shape();
    let (rows, per_unit) = (x.len(), shape.panels_per_unit());
    let columns = shape.columns();
    let indirect = meaning(shape.dtype()).filter(|_| !gemv::is_direct(shape.dtype()));
    // Pairs of panels belong together.
    let quantum = if per_unit == 1 { 2 } else { 1 };
    let (units, _) = split(columns.div_ceil(PANEL), quantum, cpu.parts(shape.rows() * shape.depth()));
    // Sums of at most this many units at a time, so that scratch stays small.
    let units_at_once = units.min(16);
    tiles(cpu.pool, out, [rows, columns], out_stride, [rows, units * PANEL], |mut tile| {
        with_scratch(units_at_once * per_unit * rows, |sums: &mut [PanelRow]| {
            let first = tile.col() / PANEL;
            let last = (tile.col() + tile.cols()).div_ceil(PANEL);
            for from in (first..last).step_by(units_at_once) {
                let to = last.min(from + units_at_once);
                let panels = from * per_unit..to * per_unit;
                let sums = &mut sums[..panels.len() * rows];
                match indirect {
                    None => cpu.level.dispatch(Gemv { weight, panels, x, sums: &mut *sums }),
                    Some(meaning) => {
                        for (panel, sums) in panels.zip(sums.chunks_exact_mut(rows)) {
                            gemv::panel_sums(cpu.level, (weight, meaning), panel, x, sums);
                        }
                    }
                }
                for unit in from..to {
                    let sums = &mut sums[(unit - from) * per_unit * rows..][..per_unit * rows];
                    let columns = unit_columns(shape, unit);
                    let tile = &mut tile;
                    Finish { epilogue, columns, sums, rows: 0..rows, first_row: 0, tile }.run(cpu.level);
                }
            }
        });
    })
}

fn many_rows<X: Element, Y: Element>(
    cpu: Cpu<'_>,
    x: Rows<'_, X>,
    weight: &Packed<'_>,
    epilogue: &Epilogue<'_, Y>,
    out: &mut [Y],
    out_stride: usize,
) -> Result<()> {
    let shape = weight.shape();
    let (depth, stretches) = (shape.depth(), shape.depth().div_ceil(DEPTH));
    let most = block_rows(depth);
    let blocks = x.rows.div_ceil(most);
    let block = x.rows.div_ceil(blocks);
    with_scratch(block * stretches, |packed: &mut [DepthRow]| {
        for first in (0..x.rows).step_by(block) {
            let rows = block.min(x.rows - first);
            let packed = &mut packed[..rows * stretches];
            let rest = x.skip(first);
            let part = packed.len().div_ceil(cpu.parts(rows * depth)).max(1);
            chunks(cpu.pool, packed, part, |i, out| {
                let (x, stride) = (rest.data, rest.stride);
                cpu.level.dispatch(PackRows { x, stride, rows, depth, first: i * part, out });
            })?;
            let block_out = BlockOut { epilogue, first, rows };
            gemm(cpu, packed, weight, &block_out, &mut out[first * out_stride..], out_stride)?;
        }
        Ok(())
    })
}

/// The rows of the result that one block of x makes.
pub(super) struct BlockOut<'a, Y> {
    pub epilogue: &'a Epilogue<'a, Y>,
    pub first: usize,
    pub rows: usize,
}

fn gemm<Y: Element>(
    cpu: Cpu<'_>,
    x: &[DepthRow],
    weight: &Packed<'_>,
    block: &BlockOut<'_, Y>,
    out: &mut [Y],
    out_stride: usize,
) -> Result<()> {
    let shape = weight.shape();
    let (rows, per_unit) = (block.rows, shape.panels_per_unit());
    let tile_size = tile_size(cpu, shape, rows);
    tiles(cpu.pool, out, [rows, shape.columns()], out_stride, tile_size, |mut tile| {
        let here = tile.rows();
        with_scratch(DEPTH + per_unit * here, |scratch: &mut [PanelRow]| {
            let (decoded, sums) = scratch.split_at_mut(DEPTH);
            for unit in tile.col() / PANEL..(tile.col() + tile.cols()).div_ceil(PANEL) {
                for p in 0..per_unit {
                    let sums = &mut sums[p * here..][..here];
                    panel_sums(cpu.level, weight, unit * per_unit + p, x, (rows, tile.row()), decoded, sums);
                }
                let finish = Finish {
                    epilogue: block.epilogue,
                    columns: unit_columns(shape, unit),
                    sums: &mut sums[..per_unit * here],
                    rows: 0..here,
                    first_row: block.first + tile.row(),
                    tile: &mut tile,
                };
                finish.run(cpu.level);
            }
        });
    })
}

/// Tiles of all rows of a block and a few units of columns; also cut by rows where there are too few columns.
pub(super) fn tile_size(cpu: Cpu<'_>, shape: &PackedShape, rows: usize) -> [usize; 2] {
    let units = shape.columns().div_ceil(PANEL);
    let parts = cpu.parts(rows * shape.rows() * shape.depth());
    let (units_each, unit_parts) = split(units, 1, parts);
    let (rows_each, _) = split(rows, 12, parts / unit_parts);
    [rows_each, units_each * PANEL]
}

/// The columns of the result that unit `unit` makes.
pub(super) fn unit_columns(shape: &PackedShape, unit: usize) -> Columns {
    let first = unit * PANEL;
    Columns {
        first,
        count: PANEL.min(shape.columns() - first),
        up_bias: (shape.arrangement() == Arrangement::GateUp).then(|| shape.columns()),
    }
}

/// Finishes some rows of a tile.
pub(super) struct Finish<'a, 'b, Y> {
    pub epilogue: &'a Epilogue<'a, Y>,
    pub columns: Columns,
    /// `[panel][row]`, one panel or gate and up; used up.
    pub sums: &'a mut [PanelRow],
    /// The rows of the tile.
    pub rows: Range<usize>,
    /// The row of the whole result (that residuals count by) that is the tile's first.
    pub first_row: usize,
    pub tile: &'a mut TileMut<'b, Y>,
}

impl<Y: Element> Finish<'_, '_, Y> {
    pub(super) fn run(self, level: SimdLevel) {
        let &Epilogue { bias, activation, residual } = self.epilogue;
        let (columns, first_row) = (self.columns, self.first_row);
        let (sums, ups) = self.sums.split_at_mut(self.rows.len());
        if bias.is_some() || activation != Activation::None || !ups.is_empty() {
            level.dispatch(Activate { bias, activation, columns, sums: &mut *sums, ups });
        }
        level.dispatch(Store { residual, columns, sums, rows: self.rows, first_row, tile: self.tile });
    }
}

struct Store<'a, 'b, Y> {
    residual: Residual<'a, Y>,
    columns: Columns,
    sums: &'a [PanelRow],
    rows: Range<usize>,
    first_row: usize,
    tile: &'a mut TileMut<'b, Y>,
}

impl<Y: Element> Kernel for Store<'_, '_, Y> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let at = self.columns.first - self.tile.col();
        for (sum, r) in self.sums.iter().zip(self.rows) {
            let out = &mut self.tile.row_mut(r)[at..at + self.columns.count];
            store_row(s, sum, self.residual, self.first_row + r, self.columns, out);
        }
    }
}
