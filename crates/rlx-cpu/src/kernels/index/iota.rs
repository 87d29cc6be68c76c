//! Indices along an axis.

use rlx_ir::bail;

use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::elementwise::{Scalar, Wide};
use crate::pool::chunks;

/// `out[o, i, n] = i`: floats are rounded once.
///
/// Shapes: out `[outer, size, inner]`. Dtypes: floats and integers. Errors: `InvalidArgument` where lengths do not agree, or an
/// integer dtype does not hold an index.
pub fn iota<T: Scalar>(cpu: Cpu<'_>, [outer, size, inner]: [usize; 3], out: &mut [T]) -> Result<()> {
    let whole = outer.checked_mul(size).and_then(|n| n.checked_mul(inner));
    if whole != Some(out.len()) {
        bail!(InvalidArgument, "iota of [{outer}, {size}, {inner}] into {} elements", out.len());
    }
    if out.is_empty() {
        return Ok(());
    }
    let last = size as i64 - 1;
    if matches!(T::narrow(Wide::Int(last)).widen(), Wide::Int(held) if held != last) {
        let dtype = std::any::type_name::<T>();
        bail!(InvalidArgument, "{dtype} cannot hold the indices of {size} elements");
    }
    let each = out.len().div_ceil(cpu.parts(out.len()));
    chunks(cpu.pool, out, each, |i, out| {
        let start = i * each;
        let (mut index, mut place) = (start / inner % size, start % inner);
        let mut rest = out;
        while !rest.is_empty() {
            // To the end of a row, or with one element for each index to the last index.
            let count = rest.len().min(if inner == 1 { size - index } else { inner - place });
            let (row, after) = rest.split_at_mut(count);
            if inner == 1 {
                fill(index as i64, row);
                index = 0;
            } else {
                row.fill(T::narrow(Wide::Int(index as i64)));
                (index, place) = (if index + 1 == size { 0 } else { index + 1 }, 0);
            }
            rest = after;
        }
    })
}

fn fill<T: Scalar>(first: i64, out: &mut [T]) {
    for (out, index) in out.iter_mut().zip(first..) {
        *out = T::narrow(Wide::Int(index));
    }
}
