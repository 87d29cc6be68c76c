//! Rows by index along any axis.

use rlx_ir::bail;

use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::pool::chunks;

/// `out[o, i] = x[o, rows[i]]`, for rows of `inner` elements.
///
/// Shapes: x `[outer, size, inner]`, out `[outer, rows, inner]`. Dtypes: any, as bits. Errors: `InvalidArgument` where lengths do
/// not agree, or a row is not below `size`.
pub fn gather<T: Copy + Send + Sync>(
    cpu: Cpu<'_>,
    [outer, size, inner]: [usize; 3],
    x: &[T],
    rows: &[usize],
    out: &mut [T],
) -> Result<()> {
    let elems = |rows: usize| outer.checked_mul(rows)?.checked_mul(inner);
    if elems(size) != Some(x.len()) || elems(rows.len()) != Some(out.len()) {
        let (x, rows, out) = (x.len(), rows.len(), out.len());
        bail!(InvalidArgument, "gather of {rows} of [{outer}, {size}, {inner}]: {x} elements into {out}");
    }
    // Of nothing, no row is out of range.
    if let Some(row) = rows.iter().find(|row| outer > 0 && **row >= size) {
        bail!(InvalidArgument, "gather: row {row} is out of range for {size} rows");
    }
    if out.is_empty() {
        return Ok(());
    }
    if inner == 1 {
        return lines(cpu, size, x, rows, out);
    }
    let each = (outer * rows.len()).div_ceil(cpu.parts(size_of_val(out) / 4));
    chunks(cpu.pool, out, each * inner, |i, out| {
        for (r, out) in out.chunks_exact_mut(inner).enumerate() {
            let (o, row) = ((i * each + r) / rows.len(), rows[(i * each + r) % rows.len()]);
            out.copy_from_slice(&x[(o * size + row) * inner..][..inner]);
        }
    })
}

/// Single elements of lines of `size`.
fn lines<T: Copy + Send + Sync>(
    cpu: Cpu<'_>,
    size: usize,
    x: &[T],
    rows: &[usize],
    out: &mut [T],
) -> Result<()> {
    let each = out.len().div_ceil(cpu.parts(out.len()));
    chunks(cpu.pool, out, each, |i, out| {
        let (mut line, mut from) = (i * each / rows.len(), i * each % rows.len());
        let mut rest = out;
        while !rest.is_empty() {
            let count = rest.len().min(rows.len() - from);
            let (own, after) = rest.split_at_mut(count);
            let x = &x[line * size..][..size];
            for (out, row) in own.iter_mut().zip(&rows[from..]) {
                *out = x[*row];
            }
            (line, from, rest) = (line + 1, 0, after);
        }
    })
}
