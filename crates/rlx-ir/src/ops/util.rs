//! Index arithmetic shared by reference evaluations.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};

/// The number of elements of a row-major tensor before, at and after `axis`.
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
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> Result<usize> {
    let rank_i = i64::try_from(rank).unwrap_or(i64::MAX);
    let resolved = if axis < 0 { axis + rank_i } else { axis };
    match usize::try_from(resolved) {
        Ok(a) if a < rank => Ok(a),
        _ => crate::bail!(InvalidArgument, "axis {axis} is out of range for rank {rank}"),
    }
}

/// A tensor as ops that only move values see it: units are elements, or the blocks of the last axis.
#[derive(Clone, Debug)]
pub(crate) struct Units {
    /// The sizes in units.
    pub(crate) shape: Vec<usize>,
    /// The bytes of a unit.
    pub(crate) bytes: usize,
}

impl Units {
    /// The units of a tensor of type `ty`.
    pub(crate) fn of(ty: &TensorType) -> Self {
        let mut shape = ty.shape.clone();
        if let Some(last) = shape.last_mut() {
            *last /= ty.dtype.block_elems();
        }
        Self { shape, bytes: ty.dtype.block_bytes() }
    }
}

/// A tensor of type `ty` whose units are those of `x` at `positions`.
pub(crate) fn take_units(
    x: &Tensor,
    ty: &TensorType,
    positions: impl IntoIterator<Item = usize>,
) -> Result<Tensor> {
    let size = Units::of(x.ty()).bytes;
    let mut bytes = Vec::new();
    for at in positions {
        match at.checked_mul(size).and_then(|start| x.bytes().get(start..)?.get(..size)) {
            Some(unit) => bytes.extend_from_slice(unit),
            None => crate::bail!(Bug, "position {at} is outside of {}", x.ty()),
        }
    }
    Tensor::from_bytes(ty.clone(), bytes)
}

/// Whether values of `dtype` may be indices.
pub(crate) fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::I32 | DType::I64 | DType::U32)
}

/// For each element an integer that orders as the elements do: zeros are equal, and NaN is largest.
pub(crate) fn sort_keys(x: &Tensor) -> Result<Vec<i64>> {
    if !x.dtype().is_float() {
        return x.to_i64();
    }
    let key = |v: f64| {
        let magnitude = v.abs().to_bits().cast_signed();
        match (v.is_nan(), v < 0.0) {
            (true, _) => i64::MAX,
            (_, true) => -magnitude,
            _ => magnitude,
        }
    };
    Ok(x.to_f64()?.into_iter().map(key).collect())
}
