//! One vector for each sequence of a ragged batch.

#[cfg(test)]
mod tests;

use super::Cpu;
use super::attention::spans;
use super::matmul::{Element, load_part, store_part};
use super::reduce::{one, wide_mean};
use crate::error::{Error, Result};
use crate::pool::chunks;
use crate::simd::{Kernel, LANES, Simd};

use rlx_ir::bail;

/// How the rows of a sequence become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// Their mean: summed in ascending order, then divided; finite where they are.
    Mean,
    /// The first.
    Cls,
    /// The last.
    Last,
    /// The largest of each column, NaN where any is NaN.
    Max,
}

/// `out[r] = pool(x[starts[r]..starts[r + 1]])`; an empty sequence gives zeros.
///
/// Shapes: x `[N, cols]`, starts `[R + 1]`, out `[R, cols]`. Dtypes: f32, f16, bf16; sums are f32. Errors:
/// `InvalidArgument` where sizes do not agree.
pub fn pool<T: Element>(
    cpu: Cpu<'_>,
    pooling: Pooling,
    cols: usize,
    x: &[T],
    starts: &[i32],
    out: &mut [T],
) -> Result<()> {
    if cols == 0 && x.is_empty() && out.is_empty() {
        return Ok(());
    }
    let tokens = x.len().checked_div(cols).unwrap_or(0);
    let spans = spans("pooling", starts, tokens)?;
    if x.len() != tokens * cols || out.len() != spans.len() * cols {
        bail!(
            InvalidArgument,
            "pooling of {} elements in rows of {cols} and {} sequences into {}",
            x.len(),
            spans.len(),
            out.len()
        );
    }
    if out.is_empty() {
        return Ok(());
    }
    let each = spans.len().div_ceil(cpu.parts(x.len()));
    chunks(cpu.pool, out, each * cols, |i, out| {
        for (r, out) in out.chunks_mut(cols).enumerate() {
            let span = spans[i * each + r].clone();
            let rows = &x[span.start * cols..span.end * cols];
            let rows = match pooling {
                Pooling::Cls => &rows[..rows.len().min(cols)],
                Pooling::Last => &rows[rows.len().saturating_sub(cols)..],
                Pooling::Mean | Pooling::Max => rows,
            };
            cpu.level.dispatch(Pool { pooling, rows, out });
        }
    })
}

struct Pool<'a, T> {
    pooling: Pooling,
    rows: &'a [T],
    out: &'a mut [T],
}

impl<T: Element> Kernel for Pool<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let cols = self.out.len();
        let count = s.splat((self.rows.len() / cols).max(1) as f32);
        for (i, out) in self.out.chunks_mut(LANES).enumerate() {
            let mut y = s.zero();
            for (r, row) in self.rows.chunks_exact(cols).enumerate() {
                let row = load_part(s, &row[i * LANES..][..out.len()]);
                y = match (r, self.pooling) {
                    (0, _) => row,
                    (_, Pooling::Max) => s.max(y, row),
                    _ => s.add(y, row),
                };
            }
            if self.pooling == Pooling::Mean {
                let mut mean = [0f32; LANES];
                s.store(s.div(y, count), &mut mean);
                for (c, mean) in mean.iter_mut().enumerate().take(out.len()).filter(|(_, m)| !m.is_finite()) {
                    let column = self.rows.chunks_exact(cols).map(|row| one(s, &row[i * LANES + c]));
                    *mean = wide_mean(column);
                }
                y = s.load(&mean);
            }
            store_part(s, y, out);
        }
    }
}
