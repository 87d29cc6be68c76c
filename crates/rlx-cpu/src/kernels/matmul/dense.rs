//! Batched products of two operands that change from run to run: both are packed on the fly.

use rlx_ir::bail;

use super::epilogue::{Columns, Element, Epilogue, Residual, load_part};
use super::format::lanes_mut;
use super::gemm::{Multiply, block_rows};
use super::product::{Finish, check_read, check_written};
use super::tile::Start;
use super::{DEPTH, DepthRow, PANEL, PanelRow};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::scratch::with_scratch;
use crate::pool::{TileMut, split, tiles};
use crate::simd::{Kernel, LANES, Simd, array_of};

/// A batch of matrices with any strides, counted in elements; a batch stride of 0 repeats one matrix.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// From matrix to matrix.
    pub batch_stride: usize,
    /// From row to row.
    pub row_stride: usize,
    /// From column to column.
    pub col_stride: usize,
}

impl<'a, T: Element> Operand<'a, T> {
    fn check(&self, what: &str, [batch, rows, cols]: [usize; 3]) -> Result<()> {
        if batch == 0 || rows == 0 || cols == 0 {
            return Ok(());
        }
        let last = [(batch, self.batch_stride), (rows, self.row_stride), (cols, self.col_stride)]
            .into_iter()
            .try_fold(0usize, |at, (n, stride)| at.checked_add((n - 1).checked_mul(stride)?));
        if last.is_none_or(|at| at >= self.data.len()) {
            bail!(
                InvalidArgument,
                "matmul: {what} of [{batch}, {rows}, {cols}] with strides [{}, {}, {}] does not fit {} elements",
                self.batch_stride,
                self.row_stride,
                self.col_stride,
                self.data.len()
            );
        }
        Ok(())
    }

    fn matrix(self, batch: usize) -> Self {
        Self { data: &self.data[batch * self.batch_stride..], ..self }
    }
}

/// `out[b] = epilogue(a[b] · b[b])`.
///
/// Shapes: `[batch, m, n, k]` gives a `[batch, m, k]`, b `[batch, k, n]` (for b stored as `[n, k]`, exchange its
/// strides), out `[batch, m, n]` without gaps; a residual counts rows through the whole batch. Dtypes: each operand
/// and the result f32, f16 or bf16. Numerics: the order of sums of the [module](super). Errors: `InvalidArgument`
/// where slices and sizes do not agree.
pub fn dense<A: Element, B: Element, Y: Element>(
    cpu: Cpu<'_>,
    [batch, m, n, k]: [usize; 4],
    a: Operand<'_, A>,
    b: Operand<'_, B>,
    epilogue: &Epilogue<'_, Y>,
    out: &mut [Y],
) -> Result<()> {
    a.check("the left operand", [batch, m, k])?;
    b.check("the right operand", [batch, k, n])?;
    let Some(rows) = batch.checked_mul(m) else {
        bail!(InvalidArgument, "matmul: a batch of {batch} times {m} rows is too large");
    };
    check_written("the result", out.len(), [rows, n], n)?;
    if let Residual::From { data, stride } = epilogue.residual {
        check_read("the residual", data.len(), [rows, n], stride)?;
    }
    if epilogue.bias.is_some_and(|bias| bias.len() != n) {
        bail!(InvalidArgument, "matmul: the bias does not have {n} values");
    }
    if rows == 0 || n == 0 {
        return Ok(());
    }
    let parts = cpu.parts(rows.saturating_mul(n).saturating_mul(k));
    let (units, unit_parts) = split(n.div_ceil(PANEL), 1, parts.div_ceil(batch));
    // A tile must not cross from one matrix of the batch into the next.
    let height = if batch == 1 { split(m, 12, parts / unit_parts).0 } else { m };
    tiles(cpu.pool, out, [rows, n], n, [height, units * PANEL], |mut tile| {
        let (index, row) = (tile.row() / m, tile.row() % m);
        let task = Task { a: a.matrix(index), b: b.matrix(index), row, k };
        task.run(cpu, epilogue, &mut tile);
    })
}

struct Task<'a, A, B> {
    a: Operand<'a, A>,
    b: Operand<'a, B>,
    row: usize,
    k: usize,
}

impl<A: Element, B: Element> Task<'_, A, B> {
    fn run<Y: Element>(&self, cpu: Cpu<'_>, epilogue: &Epilogue<'_, Y>, tile: &mut TileMut<'_, Y>) {
        let height = block_rows(self.k).min(tile.rows());
        let stretches = self.k.div_ceil(DEPTH);
        with_scratch(height * stretches, |x: &mut [DepthRow]| {
            with_scratch(DEPTH + height, |scratch: &mut [PanelRow]| {
                let (panel, sums) = scratch.split_at_mut(DEPTH);
                for first in (0..tile.rows()).step_by(height) {
                    let rows = height.min(tile.rows() - first);
                    self.pack_left(cpu, first, rows, &mut x[..rows * stretches]);
                    for col in (tile.col()..tile.col() + tile.cols()).step_by(PANEL) {
                        let columns = Columns {
                            first: col,
                            count: PANEL.min(tile.col() + tile.cols() - col),
                            up_bias: None,
                        };
                        let sums = &mut sums[..rows];
                        self.panel_sums(cpu, columns, x, panel, sums);
                        let (rows, first_row) = (first..first + rows, tile.row());
                        Finish { epilogue, columns, sums, rows, first_row, tile }.run(cpu.level);
                    }
                }
            });
        });
    }

    fn pack_left(&self, cpu: Cpu<'_>, first: usize, rows: usize, out: &mut [DepthRow]) {
        for (i, out) in out.iter_mut().enumerate() {
            let (from, row) = (i / rows * DEPTH, self.row + first + i % rows);
            let count = DEPTH.min(self.k - from);
            let start = row * self.a.row_stride + from * self.a.col_stride;
            let (x, stride) = (&self.a.data[start..], self.a.col_stride);
            cpu.level.dispatch(Gather { x, stride, out: &mut out[..count] });
        }
    }

    fn panel_sums(
        &self,
        cpu: Cpu<'_>,
        columns: Columns,
        x: &[DepthRow],
        panel: &mut [PanelRow],
        sums: &mut [PanelRow],
    ) {
        if self.k == 0 {
            sums.fill([0.0; PANEL]);
        }
        for (stretch, from) in (0..self.k).step_by(DEPTH).enumerate() {
            let panel = &mut panel[..DEPTH.min(self.k - from)];
            cpu.level.dispatch(PackRight { b: self.b, from, columns, out: &mut *panel });
            let x = &x[stretch * sums.len()..][..sums.len()];
            let start = if stretch == 0 { Start::Zero } else { Start::Running };
            cpu.level.dispatch(Multiply { x, from: 0, panel, sums: &mut *sums, start });
        }
    }
}

/// Elements a stride apart, as f32.
struct Gather<'a, T> {
    x: &'a [T],
    stride: usize,
    out: &'a mut [f32],
}

/// One element as f32.
#[inline(always)]
fn one<S: Simd, T: Element>(s: S, x: T) -> f32 {
    let mut value = [0.0; LANES];
    s.store(T::load(s, &[x; LANES]), &mut value);
    value[0]
}

#[inline(always)]
fn gather<S: Simd, T: Element>(s: S, x: &[T], stride: usize, out: &mut [f32]) {
    let whole = T::as_f32(x);
    for (i, out) in out.chunks_mut(LANES).enumerate() {
        let at = i * LANES * stride;
        if stride == 1 {
            let mut values = [0.0; LANES];
            s.store(load_part(s, &x[at..at + out.len()]), &mut values);
            out.copy_from_slice(&values[..out.len()]);
        } else if let Some(x) = whole {
            for (j, out) in out.iter_mut().enumerate() {
                *out = x[at + j * stride];
            }
        } else {
            for (j, out) in out.iter_mut().enumerate() {
                *out = one(s, x[at + j * stride]);
            }
        }
    }
}

impl<T: Element> Kernel for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        gather(s, self.x, self.stride, self.out);
    }
}

/// Rows `from..from + out.len()` of some columns of b; columns that are not there are 0.
struct PackRight<'a, T> {
    b: Operand<'a, T>,
    from: usize,
    columns: Columns,
    out: &'a mut [PanelRow],
}

impl<T: Element> Kernel for PackRight<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { b, from, columns: Columns { first, count, .. }, out } = self;
        let start = from * b.row_stride + first * b.col_stride;
        if b.row_stride != 1 || b.col_stride == 1 {
            for (k, out) in out.iter_mut().enumerate() {
                gather(s, &b.data[start + k * b.row_stride..], b.col_stride, &mut out[..count]);
                out[count..].fill(0.0);
            }
            return;
        }
        // b is stored as [n, k]: turn squares of 16 by 16.
        for (i, out) in out.chunks_mut(LANES).enumerate() {
            for half in 0..2 {
                let mut square: [S::F; LANES] = array_of!(s.zero(); LANES, |j| {
                    let col = half * LANES + j;
                    if col < count {
                        let at = start + i * LANES + col * b.col_stride;
                        load_part(s, &b.data[at..at + out.len()])
                    } else {
                        s.zero()
                    }
                });
                s.transpose(&mut square);
                for (row, out) in square.iter().zip(out.iter_mut()) {
                    s.store(*row, lanes_mut(out, half));
                }
            }
        }
    }
}
