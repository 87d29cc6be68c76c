//! Arrays of any strides, read in row-major order: how operands are broadcast, transposed and cut.

use std::ops::Range;

use rlx_ir::bail;

use crate::error::{Error, Result};

/// Elements with the distance between neighbours along each axis: 0 where they repeat.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a, T> {
    /// From the first element to the last.
    pub data: &'a [T],
    /// Distances in elements, one for each axis.
    pub strides: &'a [usize],
}

#[derive(Clone, Copy, Debug)]
struct Axis<const N: usize> {
    size: usize,
    strides: [usize; N],
}

/// The axes of `N` arrays of one shape: as few as say the same. Axes of size 1 are left out, and neighbours that all arrays
/// walk through in one go are one axis.
#[derive(Debug)]
pub(crate) struct Axes<const N: usize> {
    axes: Vec<Axis<N>>,
    elems: usize,
}

impl<const N: usize> Axes<N> {
    /// The axes of `arrays`, each of shape `shape`.
    ///
    /// Errors: `InvalidArgument` where there are not as many strides as sizes, or data is too short.
    pub(crate) fn new<T: Copy>(what: &str, shape: &[usize], arrays: [Strided<'_, T>; N]) -> Result<Self> {
        Self::of(what, shape, arrays.map(|a| (a.data.len(), a.strides)))
    }

    /// [`new`](Self::new) of arrays of any dtypes, by their lengths and strides.
    pub(crate) fn of(what: &str, shape: &[usize], arrays: [(usize, &[usize]); N]) -> Result<Self> {
        let elems = shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        for (len, own) in arrays {
            let last = shape.iter().zip(own).try_fold(0usize, |at, (&size, &stride)| {
                at.checked_add(size.saturating_sub(1).checked_mul(stride)?)
            });
            let reaches = elems == Some(0) || last.is_some_and(|last| last < len);
            if own.len() != shape.len() || elems.is_none() || !reaches {
                bail!(InvalidArgument, "{what} of {shape:?} with strides {own:?} from {len} elements");
            }
        }
        let mut axes: Vec<Axis<N>> = Vec::new();
        for (axis, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let strides = arrays.map(|(_, own)| own[axis]);
            match axes.last_mut() {
                Some(outer) if (0..N).all(|n| strides[n].checked_mul(size) == Some(outer.strides[n])) => {
                    *outer = Axis { size: outer.size * size, strides };
                }
                _ => axes.push(Axis { size, strides }),
            }
        }
        Ok(Self { axes, elems: elems.unwrap_or(0) })
    }

    /// The number of elements of the shape.
    pub(crate) fn elems(&self) -> usize {
        self.elems
    }

    /// Whether array `n` lies in row-major order without gaps.
    pub(crate) fn is_dense(&self, n: usize) -> bool {
        let mut dense = 1;
        self.axes.iter().rev().all(|axis| {
            let fits = axis.strides[n] == dense;
            dense *= axis.size;
            fits
        })
    }

    /// Walks through array `n`: for each run of the `len` elements from number `start` on that lie evenly apart, calls `run`
    /// with where it begins, how far apart they are, and which of the `len` they are.
    pub(crate) fn runs(
        &self,
        n: usize,
        start: usize,
        len: usize,
        mut run: impl FnMut(usize, usize, Range<usize>),
    ) {
        let Some((inner, outer)) = self.axes.split_last() else { return run(0, 1, 0..len) };
        let (mut row, mut column) = (start / inner.size.max(1), start % inner.size.max(1));
        let mut index = vec![0; outer.len()];
        for (i, axis) in index.iter_mut().zip(outer).rev() {
            *i = row % axis.size;
            row /= axis.size;
        }
        let mut done = 0;
        while done < len {
            let count = (inner.size - column).min(len - done);
            let first: usize = index.iter().zip(outer).map(|(i, axis)| i * axis.strides[n]).sum();
            run(first + column * inner.strides[n], inner.strides[n], done..done + count);
            (done, column) = (done + count, 0);
            for (i, axis) in index.iter_mut().zip(outer).rev() {
                *i += 1;
                if *i < axis.size {
                    break;
                }
                *i = 0;
            }
        }
    }

    /// The elements of array `n`, which are `data`, from number `start` on.
    pub(crate) fn read<T: Copy>(&self, n: usize, data: &[T], start: usize, out: &mut [T]) {
        self.runs(n, start, out.len(), |first, stride, range| {
            let out = &mut out[range];
            match stride {
                0 => out.fill(data[first]),
                1 => out.copy_from_slice(&data[first..][..out.len()]),
                _ => out.iter_mut().zip(data[first..].iter().step_by(stride)).for_each(|(o, x)| *o = *x),
            }
        });
    }

    /// The elements of array `n`, which are `data`, from number `start` on: where they are, or in `scratch`.
    pub(crate) fn in_order<'a, T: Copy>(
        &self,
        n: usize,
        data: &'a [T],
        start: usize,
        scratch: &'a mut [T],
    ) -> &'a [T] {
        if self.is_dense(n) {
            return &data[start..][..scratch.len()];
        }
        self.read(n, data, start, scratch);
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_are_walked_through_in_one_go_are_one_axis() {
        let data = [0; 24];
        let of = |strides| Strided { data: &data, strides };
        let axes = Axes::new("a", &[2, 1, 3, 4], [of(&[12, 99, 4, 1])]).unwrap();
        assert_eq!((axes.axes.len(), axes.is_dense(0), axes.elems()), (1, true, 24));
        // A column beside a matrix keeps two axes, a row and a column three.
        let axes = Axes::new("a", &[2, 3, 4], [of(&[12, 4, 1]), of(&[3, 1, 0])]).unwrap();
        assert_eq!((axes.axes.len(), axes.is_dense(0), axes.is_dense(1)), (2, true, false));
        let axes = Axes::new("a", &[2, 3, 4], [of(&[0, 1, 0]), of(&[0, 0, 1])]).unwrap();
        assert_eq!((axes.axes.len(), axes.is_dense(0)), (3, false));
        let axes = Axes::new("a", &[], [of(&[])]).unwrap();
        assert!(axes.is_dense(0));
    }

    #[test]
    fn elements_come_in_row_major_order_from_any_number_on() {
        let data: Vec<usize> = (0..60).collect();
        let (shape, strides) = ([3, 2, 5], [[1, 30, 3], [0, 10, 1], [20, 0, 0]]);
        for strides in &strides {
            let axes = Axes::new("a", &shape, [Strided { data: &data, strides }]).unwrap();
            let place = |i: usize| i / 10 * strides[0] + i / 5 % 2 * strides[1] + i % 5 * strides[2];
            let all: Vec<usize> = (0..30).map(place).collect();
            for start in 0..30 {
                for len in 0..30 - start {
                    let mut out = vec![0; len];
                    axes.read(0, &data, start, &mut out);
                    assert_eq!(out, all[start..start + len], "{strides:?} {start} {len}");
                }
            }
        }
    }

    #[test]
    fn data_that_is_too_short_is_refused() {
        let of = |len: usize| Axes::new("a", &[2, 3], [Strided { data: &[0; 6][..len], strides: &[3, 1] }]);
        assert!(of(6).is_ok());
        assert!(of(5).unwrap_err().message().contains("from 5 elements"));
        assert!(Axes::new("a", &[2], [Strided { data: &[0; 6], strides: &[3, 1] }]).is_err());
        assert!(Axes::new("a", &[usize::MAX, 3], [Strided { data: &[0; 6], strides: &[0, 0] }]).is_err());
        assert!(Axes::new::<i32>("a", &[0, 3], [Strided { data: &[], strides: &[3, 1] }]).is_ok());
    }
}
