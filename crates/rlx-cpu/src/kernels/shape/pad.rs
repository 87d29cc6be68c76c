//! Elements of one value around an array.

use rlx_ir::bail;

use crate::error::{Error, Result};
use crate::kernels::{Cpu, Strided};
use crate::pool::chunks;

/// An axis of the operand, with how many elements are added before and after.
#[derive(Clone, Copy, Debug)]
struct Axis {
    size: usize,
    stride: usize,
    low: usize,
    padded: usize,
}

/// `out = x` with `low` elements of `value` before and `high` after each axis.
///
/// Shapes: x `shape`, of any strides; out `[low[0] + shape[0] + high[0], ...]`. Dtypes: any, as bits. Errors: `InvalidArgument`
/// where sizes do not agree.
pub fn pad<T: Copy + Send + Sync>(
    cpu: Cpu<'_>,
    shape: &[usize],
    x: Strided<'_, T>,
    [low, high]: [&[usize]; 2],
    value: T,
    out: &mut [T],
) -> Result<()> {
    let rank = shape.len();
    let mut axes = Vec::with_capacity(rank);
    let (mut reach, mut whole) = (Some(0usize), Some(1usize));
    for axis in 0..rank {
        let (Some(&stride), Some(&low), Some(&high)) = (x.strides.get(axis), low.get(axis), high.get(axis))
        else {
            bail!(InvalidArgument, "pad of {rank} axes by fewer amounts or strides");
        };
        let size = shape[axis];
        let padded = low.checked_add(size).and_then(|n| n.checked_add(high));
        whole = whole.zip(padded).and_then(|(n, padded)| n.checked_mul(padded));
        reach = reach.and_then(|at| at.checked_add(size.saturating_sub(1).checked_mul(stride)?));
        axes.push(Axis { size, stride, low, padded: padded.unwrap_or(0) });
    }
    let inside = shape.contains(&0) || reach.is_some_and(|last| last < x.data.len());
    if whole != Some(out.len()) || !inside {
        let (x, out) = (x.data.len(), out.len());
        bail!(InvalidArgument, "pad of {shape:?} by {low:?} and {high:?}: {x} elements into {out}");
    }
    if out.is_empty() {
        return Ok(());
    }
    let axes = joined(&axes);
    let Some((&row, outer)) = axes.split_last() else {
        out[0] = x.data[0];
        return Ok(());
    };
    let each = (out.len() / row.padded).div_ceil(cpu.parts(out.len()));
    chunks(cpu.pool, out, each * row.padded, |i, out| {
        for (r, out) in out.chunks_exact_mut(row.padded).enumerate() {
            match start(outer, i * each + r) {
                Some(at) if row.size > 0 => fill(row, &x.data[at..], value, out),
                _ => out.fill(value),
            }
        }
    })
}

/// Neighbours that are walked through in one go are one axis, where the inner one gets nothing added.
fn joined(axes: &[Axis]) -> Vec<Axis> {
    let mut list: Vec<Axis> = Vec::with_capacity(axes.len());
    for &axis in axes {
        match list.last_mut() {
            Some(outer)
                if axis.padded == axis.size && axis.stride.checked_mul(axis.size) == Some(outer.stride) =>
            {
                *outer = Axis {
                    size: outer.size * axis.size,
                    stride: axis.stride,
                    low: outer.low * axis.size,
                    padded: outer.padded * axis.size,
                };
            }
            _ => list.push(axis),
        }
    }
    list
}

/// Where row number `row` begins in the operand; `None` outside of it.
fn start(outer: &[Axis], mut row: usize) -> Option<usize> {
    let mut at = 0;
    for axis in outer.iter().rev() {
        let index = (row % axis.padded).checked_sub(axis.low).filter(|i| *i < axis.size)?;
        at += index * axis.stride;
        row /= axis.padded;
    }
    Some(at)
}

fn fill<T: Copy>(row: Axis, x: &[T], value: T, out: &mut [T]) {
    let (before, rest) = out.split_at_mut(row.low);
    let (own, after) = rest.split_at_mut(row.size);
    before.fill(value);
    after.fill(value);
    if row.stride == 1 {
        own.copy_from_slice(&x[..row.size]);
    } else {
        for (i, own) in own.iter_mut().enumerate() {
            *own = x[i * row.stride];
        }
    }
}
