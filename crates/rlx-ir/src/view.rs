//! Strided views: how ops that only rearrange bytes are lowered to no work at all.

use smallvec::{SmallVec, smallvec};

use crate::dim::Dim;
use crate::types::Shape;

/// Sizes or strides per axis. Most values have few axes, whose dims lie in the list itself: plans make many views.
pub type AxisDims = SmallVec<[Dim; 4]>;

/// A view of a dense buffer: sizes, strides and offset, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Sizes per axis, outermost first.
    pub shape: AxisDims,
    /// Distance in elements between neighbours along each axis; 0 where an axis is broadcast.
    pub strides: AxisDims,
    /// The first element.
    pub offset: Dim,
}

impl View {
    /// All of a dense buffer of this shape.
    pub fn dense(shape: &Shape) -> Self {
        Self { strides: dense_strides(shape.dims()), shape: shape.dims().into(), offset: Dim::constant(0) }
    }

    /// Whether the elements lie in row-major order without gaps (the offset may be anything). Axes of size 1 may have
    /// any stride.
    pub fn is_dense(&self) -> bool {
        let one = Dim::constant(1);
        let mut dense = one.clone();
        for (axis, (size, stride)) in self.shape.iter().zip(&self.strides).enumerate().rev() {
            if *size == one {
                continue;
            }
            if *stride != dense {
                return false;
            }
            if axis > 0 {
                dense = dense * size.clone();
            }
        }
        true
    }

    /// Axis `i` of the result is axis `perm[i]` of this view.
    #[must_use]
    pub fn permute(&self, perm: &[usize]) -> Self {
        let pick = |from: &[Dim]| perm.iter().map(|&p| from[p].clone()).collect();
        Self { shape: pick(&self.shape), strides: pick(&self.strides), offset: self.offset.clone() }
    }

    /// `len` elements along `axis` from `start` on, every `step`-th.
    #[must_use]
    pub fn slice(&self, axis: usize, start: &Dim, len: &Dim, step: &Dim) -> Self {
        let mut out = self.clone();
        out.offset = out.offset + start.clone() * self.strides[axis].clone();
        out.strides[axis] = self.strides[axis].clone() * step.clone();
        out.shape[axis] = len.clone();
        out
    }

    /// This view repeated to `shape`, aligned at the last axis.
    #[must_use]
    pub fn broadcast(&self, shape: &Shape) -> Self {
        let lead = shape.rank() - self.shape.len();
        let stride = |axis: usize| match axis.checked_sub(lead) {
            Some(own) if self.shape[own] == shape[axis] => self.strides[own].clone(),
            _ => Dim::constant(0),
        };
        Self {
            strides: (0..shape.rank()).map(stride).collect(),
            shape: shape.dims().into(),
            offset: self.offset.clone(),
        }
    }

    /// The same elements in the same order under another shape; `None` where no strides can say that.
    pub fn reshape(&self, shape: &Shape) -> Option<Self> {
        let dims = shape.dims();
        if self.is_dense() {
            return Some(Self {
                strides: dense_strides(dims),
                shape: dims.into(),
                offset: self.offset.clone(),
            });
        }
        let mut strides = AxisDims::new();
        let (mut old, mut new) = (0, 0);
        while old < self.shape.len() || new < dims.len() {
            // The smallest groups of axes on both sides that hold as many elements.
            let (old_start, new_start) = (old, new);
            let mut old_elems = self.shape.get(old).cloned().unwrap_or(1.into());
            let mut new_elems = dims.get(new).cloned().unwrap_or(1.into());
            old += usize::from(old < self.shape.len());
            new += usize::from(new < dims.len());
            while old_elems != new_elems {
                let (a, b) = (old_elems.as_const()?, new_elems.as_const()?);
                if a < b {
                    old_elems = old_elems * self.shape.get(old)?.clone();
                    old += 1;
                } else {
                    new_elems = new_elems * dims.get(new)?.clone();
                    new += 1;
                }
            }
            let group = old_start..old;
            let contiguous = group
                .clone()
                .skip(1)
                .all(|axis| self.strides[axis - 1] == self.strides[axis].clone() * self.shape[axis].clone());
            if !contiguous {
                return None;
            }
            let inner = group.last().map_or(Dim::constant(1), |axis| self.strides[axis].clone());
            let local = dense_strides(&dims[new_start..new]);
            strides.extend(local.into_iter().map(|s| s * inner.clone()));
        }
        Some(Self { shape: dims.into(), strides, offset: self.offset.clone() })
    }
}

fn dense_strides(dims: &[Dim]) -> AxisDims {
    let mut out: AxisDims = smallvec![Dim::constant(1); dims.len()];
    for i in (1..dims.len()).rev() {
        out[i - 1] = out[i].clone() * dims[i].clone();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(list: &[i32]) -> AxisDims {
        list.iter().map(|&d| d.into()).collect()
    }

    #[test]
    fn a_slice_of_the_last_axis_splits_into_heads_without_a_copy() {
        let n = Dim::symbol("N");
        let whole = View::dense(&Shape::from([n.clone(), 1152.into()]));
        let part = whole.slice(1, &384.into(), &384.into(), &1.into());
        assert!(!part.is_dense());
        let heads = part.reshape(&Shape::from([n.clone(), 12.into(), 32.into()])).unwrap();
        assert_eq!((heads.strides, heads.offset), (dims(&[1152, 32, 1]), 384.into()));
        assert_eq!(part.reshape(&Shape::from([n * 384.into()])), None);
    }

    #[test]
    fn transposed_axes_do_not_merge() {
        let t = View::dense(&Shape::from([2, 3])).permute(&[1, 0]);
        assert_eq!(t.strides, dims(&[1, 3]));
        assert_eq!(t.reshape(&Shape::from([6])), None);
        assert_eq!(t.reshape(&Shape::from([3, 1, 2])).unwrap().strides, dims(&[1, 6, 3]));
    }

    #[test]
    fn broadcast_axes_have_stride_zero() {
        let row = View::dense(&Shape::from([4]));
        assert_eq!(row.broadcast(&Shape::from([3, 4])).strides, dims(&[0, 1]));
    }
}
