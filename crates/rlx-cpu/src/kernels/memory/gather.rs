//! Rows by index: the embedding.

use rlx_ir::DType;
use rlx_ir::bail;
use rlx_ir::quant::BlockType;

use super::{Index, indices};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::matmul::{Element, Packed, decode_row, load_part, store_part};
use crate::kernels::scratch::with_scratch;
use crate::pool::chunks;
use crate::simd::{Kernel, LANES, Simd};

fn check(what: &str, cols: usize, count: usize, out: usize) -> Result<()> {
    if count.checked_mul(cols) != Some(out) {
        bail!(InvalidArgument, "{what} of {count} rows of {cols} into {out} elements");
    }
    Ok(())
}

/// Fills `out` row by row, in parallel.
fn each_row<Y: Element>(
    cpu: Cpu<'_>,
    cols: usize,
    rows: &[usize],
    out: &mut [Y],
    fill: impl Fn(usize, &mut [Y]) + Sync,
) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    let each = rows.len().div_ceil(cpu.parts(out.len()));
    chunks(cpu.pool, out, each * cols, |i, out| {
        for (out, &row) in out.chunks_mut(cols).zip(&rows[i * each..]) {
            fill(row, out);
        }
    })
}

/// `out[i] = table[ids[i]]`, converted to the result's dtype.
///
/// Shapes: table `[rows, cols]`, ids `[n]`, out `[n, cols]`. Dtypes: f32, f16, bf16, each. Errors: `InvalidArgument`
/// where sizes do not agree or an id is not below `rows`.
pub fn gather_rows<T: Element, Y: Element>(
    cpu: Cpu<'_>,
    cols: usize,
    table: &[T],
    ids: &[impl Index],
    out: &mut [Y],
) -> Result<()> {
    check("gather", cols, ids.len(), out.len())?;
    let rows = indices("gather", ids, table.len().checked_div(cols).unwrap_or(usize::MAX))?;
    each_row(cpu, cols, &rows, out, |row, out| {
        cpu.level.dispatch(Convert { x: &table[row * cols..][..cols], out });
    })
}

/// [`gather_rows`] from a table of blocks in their source layout.
///
/// Errors: also where `cols` is no multiple of the block.
pub fn gather_block_rows<Y: Element>(
    cpu: Cpu<'_>,
    block: BlockType,
    cols: usize,
    table: &[u8],
    ids: &[impl Index],
    out: &mut [Y],
) -> Result<()> {
    check("gather", cols, ids.len(), out.len())?;
    let Some(row_bytes) = DType::Block(block).row_bytes(cols) else {
        bail!(InvalidArgument, "gather of {} rows of {cols} elements", block.name());
    };
    let rows = indices("gather", ids, table.len().checked_div(row_bytes).unwrap_or(usize::MAX))?;
    each_row(cpu, cols, &rows, out, |row, out| {
        with_scratch(cols, |values: &mut [f32]| {
            // Both lengths were made to agree above.
            if block.decode(&table[row * row_bytes..][..row_bytes], values).is_ok() {
                cpu.level.dispatch(Convert { x: &*values, out });
            }
        });
    })
}

/// [`gather_rows`] from a packed weight `[rows, cols]`.
pub fn gather_packed_rows<Y: Element>(
    cpu: Cpu<'_>,
    table: &Packed<'_>,
    ids: &[impl Index],
    out: &mut [Y],
) -> Result<()> {
    let cols = table.shape().depth();
    check("gather", cols, ids.len(), out.len())?;
    let rows = indices("gather", ids, table.shape().rows())?;
    each_row(cpu, cols, &rows, out, |row, out| {
        with_scratch(cols, |values: &mut [f32]| {
            // The row exists and the length is right: see above.
            if decode_row(cpu.level, table, row, values).is_ok() {
                cpu.level.dispatch(Convert { x: &*values, out });
            }
        });
    })
}

/// One row from one float dtype to another.
pub(in crate::kernels) struct Convert<'a, T, Y> {
    pub x: &'a [T],
    pub out: &'a mut [Y],
}

impl<T: Element, Y: Element> Kernel for Convert<'_, T, Y> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (x, out) in self.x.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
            store_part(s, load_part(s, x), out);
        }
    }
}
