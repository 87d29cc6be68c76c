//! Where the elements of an operand lie, as kernels are told.

use rlx_ir::{DType, TensorType};

use crate::args::MAX_RANK;
use crate::error::{Error, Result};
use crate::geometry::index;

/// An operand: sizes and strides in elements. Its first element is where the buffer is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The type of the elements.
    pub dtype: DType,
    /// The sizes, outermost first.
    pub shape: Vec<usize>,
    /// The distance between neighbours along each axis; 0 where an axis is broadcast.
    pub strides: Vec<usize>,
}

impl Layout {
    /// Row-major without gaps.
    pub fn dense(ty: &TensorType) -> Self {
        Self { dtype: ty.dtype, strides: dense_strides(&ty.shape), shape: ty.shape.clone() }
    }

    /// The number of elements.
    pub fn elems(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements lie in row-major order without gaps.
    pub fn is_dense(&self) -> bool {
        let dense = dense_strides(&self.shape);
        let axes = self.shape.iter().zip(self.strides.iter().zip(&dense));
        axes.into_iter().all(|(size, (have, want))| *size <= 1 || have == want)
    }

    /// The operand as rows of its last axis, which is dense: number, width and distance of the rows.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where the layout is another.
    pub fn rows(&self) -> Result<(usize, usize, usize)> {
        let Some((&width, outer)) = self.shape.split_last() else {
            rlx_ir::bail!(UnsupportedOnDevice, "a scalar has no rows");
        };
        let joined = Joined::new(outer, &[&self.strides[..outer.len()]]);
        let stride = joined.strides[0].last().copied().unwrap_or(width);
        let dense_row = width <= 1 || self.strides[outer.len()] == 1;
        if !dense_row || joined.sizes.len() > 1 {
            rlx_ir::bail!(UnsupportedOnDevice, "rows of {self:?} do not lie at equal distances");
        }
        Ok((outer.iter().product(), width, stride))
    }

    /// The strides with which this operand is read as one of `shape`, to which it broadcasts.
    pub(crate) fn broadcast_strides(&self, shape: &[usize]) -> Vec<usize> {
        let lead = shape.len() - self.shape.len();
        let own = self.shape.iter().zip(&self.strides);
        std::iter::repeat_n(0, lead).chain(own.map(|(d, s)| if *d == 1 { 0 } else { *s })).collect()
    }
}

fn dense_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// Axes that several operands share, where those that lie dense behind each other in all of them are one.
pub(crate) struct Joined {
    pub(crate) sizes: Vec<usize>,
    /// One list for each operand.
    pub(crate) strides: Vec<Vec<usize>>,
}

impl Joined {
    pub(crate) fn new(shape: &[usize], strides: &[&[usize]]) -> Self {
        let mut joined = Self { sizes: Vec::new(), strides: vec![Vec::new(); strides.len()] };
        for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let follows = joined
                .strides
                .iter()
                .zip(strides)
                .all(|(own, s)| own.last().is_some_and(|l| *l == s[axis] * size));
            if let (true, Some(last)) = (follows, joined.sizes.last_mut()) {
                *last *= size;
                joined.strides.iter_mut().zip(strides).for_each(|(own, s)| {
                    own.pop();
                    own.push(s[axis]);
                });
            } else {
                joined.sizes.push(size);
                joined.strides.iter_mut().zip(strides).for_each(|(own, s)| own.push(s[axis]));
            }
        }
        joined
    }

    /// The sizes as an argument.
    pub(crate) fn sizes_arg(&self) -> Result<[u32; MAX_RANK]> {
        to_arg(&self.sizes)
    }

    /// The strides of operand `at` as an argument.
    pub(crate) fn strides_arg(&self, at: usize) -> Result<[u32; MAX_RANK]> {
        to_arg(&self.strides[at])
    }
}

fn to_arg(values: &[usize]) -> Result<[u32; MAX_RANK]> {
    let mut out = [0; MAX_RANK];
    if values.len() > MAX_RANK {
        rlx_ir::bail!(UnsupportedOnDevice, "a layout of {} axes, at most {MAX_RANK} fit", values.len());
    }
    for (o, v) in out.iter_mut().zip(values) {
        *o = index(*v)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_join_where_all_operands_are_dense() {
        let joined = Joined::new(&[2, 3, 1, 4], &[&[12, 4, 4, 1], &[0, 0, 0, 1]]);
        assert_eq!((joined.sizes, joined.strides), (vec![6, 4], vec![vec![4, 1], vec![0, 1]]));
        let joined = Joined::new(&[2, 3, 4], &[&[12, 4, 1]]);
        assert_eq!((joined.sizes, joined.strides), (vec![24], vec![vec![1]]));
    }

    #[test]
    fn rows_may_have_gaps_but_not_two_kinds_of_them() {
        let at = |shape: &[usize], strides: &[usize]| {
            Layout { dtype: DType::F32, shape: shape.to_vec(), strides: strides.to_vec() }.rows().ok()
        };
        assert_eq!(at(&[2, 3, 4], &[30, 10, 1]), Some((6, 4, 10)));
        assert_eq!(at(&[2, 3, 4], &[40, 10, 1]), None);
        assert_eq!(at(&[3, 4], &[8, 2]), None);
        assert_eq!(at(&[4], &[1]), Some((1, 4, 4)));
        assert_eq!(at(&[0, 4], &[4, 1]), Some((0, 4, 4)));
    }
}
