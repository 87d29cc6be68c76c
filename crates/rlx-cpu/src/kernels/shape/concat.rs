//! Operands one after the other along an axis.

use rlx_ir::bail;

use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::pool::chunks;

/// `out[o] = operands[0][o], operands[1][o], ...`: rows one after the other.
///
/// Shapes: operands `[outer, ..]`, out `[outer, sum of theirs]`; elements may be bytes of any dtype. Errors: `InvalidArgument`
/// where lengths do not agree.
pub fn concat<T: Copy + Send + Sync>(
    cpu: Cpu<'_>,
    outer: usize,
    operands: &[&[T]],
    out: &mut [T],
) -> Result<()> {
    let total = operands.iter().try_fold(0usize, |n, x| n.checked_add(x.len()));
    let whole = |x: &&[T]| if outer == 0 { x.is_empty() } else { x.len().is_multiple_of(outer) };
    if total != Some(out.len()) || !operands.iter().all(whole) {
        bail!(InvalidArgument, "concat of {outer} rows of {total:?} elements into {}", out.len());
    }
    if out.is_empty() {
        return Ok(());
    }
    let row = out.len() / outer;
    let each = outer.div_ceil(cpu.parts(size_of_val(out) / 4));
    chunks(cpu.pool, out, each * row, |i, out| {
        for (r, out) in out.chunks_exact_mut(row).enumerate() {
            let mut rest = out;
            for x in operands {
                let len = x.len() / outer;
                let (own, after) = rest.split_at_mut(len);
                own.copy_from_slice(&x[(i * each + r) * len..][..len]);
                rest = after;
            }
        }
    })
}
