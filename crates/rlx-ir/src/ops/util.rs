//! Index arithmetic shared by reference evaluations.

use crate::dim::Dim;
use crate::error::{Error, Result};
use crate::types::Shape;

/// The number of elements of a row-major tensor before, at and after `axis`.
#[allow(dead_code)]
pub(crate) fn split_at(shape: &[usize], axis: usize) -> (usize, usize, usize) {
    let product = |s: &[usize]| s.iter().product();
    (product(&shape[..axis]), shape[axis], product(&shape[axis + 1..]))
}

/// Row-major strides in elements.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut out = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        out[i - 1] = out[i] * shape[i];
    }
    out
}

/// Calls `visit` with each multi-index of `shape`, in row-major order.
pub(crate) fn for_each_index(shape: &[usize], mut visit: impl FnMut(&[usize])) {
    let total: usize = shape.iter().product();
    let mut index = vec![0; shape.len()];
    for _ in 0..total {
        visit(&index);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

/// For each element of `out`, the row-major position in a tensor of shape `from` that is broadcast to `out`.
pub(crate) fn broadcast_positions(from: &[usize], out: &[usize]) -> Vec<usize> {
    let from_strides = strides(from);
    let lead = out.len() - from.len();
    let mut positions = Vec::with_capacity(out.iter().product());
    for_each_index(out, |index| {
        let at = (0..from.len()).map(|a| if from[a] == 1 { 0 } else { index[lead + a] * from_strides[a] });
        positions.push(at.sum());
    });
    positions
}

/// The shape that `a` and `b` broadcast to: aligned at the last axis, sizes are equal or one of them is 1.
pub(crate) fn broadcast_shapes(a: &Shape, b: &Shape) -> Result<Shape> {
    let rank = a.rank().max(b.rank());
    let one = Dim::constant(1);
    let at = |s: &Shape, i: usize| {
        let lead = rank - s.rank();
        if i < lead { one.clone() } else { s[i - lead].clone() }
    };
    let mut dims = Vec::with_capacity(rank);
    for i in 0..rank {
        let (x, y) = (at(a, i), at(b, i));
        dims.push(match (x == y, x == one, y == one) {
            (true, ..) | (_, false, true) => x,
            (_, true, false) => y,
            _ => crate::bail!(InvalidArgument, "shapes {a} and {b} do not broadcast: {x} and {y} differ"),
        });
    }
    Ok(Shape::from(dims))
}

/// `axis` counted from the front; negative ones count from the back.
#[allow(dead_code)]
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> Result<usize> {
    let rank_i = i64::try_from(rank).unwrap_or(i64::MAX);
    let resolved = if axis < 0 { axis + rank_i } else { axis };
    match usize::try_from(resolved) {
        Ok(a) if a < rank => Ok(a),
        _ => crate::bail!(InvalidArgument, "axis {axis} is out of range for rank {rank}"),
    }
}
