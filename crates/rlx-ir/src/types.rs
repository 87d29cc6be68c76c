//! Shapes and value types, symbolic and concrete.

use std::fmt;
use std::sync::Arc;

use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::symbols::Bindings;

/// The dims of a value, outermost first. Cheap to clone: passes do it for every operand.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(Arc<[Dim]>);

impl Shape {
    /// A shape of these dims: constants, symbol names and expressions may be mixed through `Into<Dim>`.
    pub fn new(dims: impl IntoIterator<Item = impl Into<Dim>>) -> Self {
        Self(dims.into_iter().map(Into::into).collect())
    }

    /// The shape of a scalar: no dims, one element.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The dims, outermost first.
    pub fn dims(&self) -> &[Dim] {
        &self.0
    }

    /// The last dim; `None` for a scalar.
    pub fn last(&self) -> Option<&Dim> {
        self.0.last()
    }

    /// The number of elements.
    pub fn elems(&self) -> Dim {
        // Constants first: the rest is one product at most, mostly of one symbol.
        let (mut constant, mut rest) = (Dim::constant(1), Dim::constant(1));
        for dim in self.0.iter() {
            let part = if dim.as_const().is_some() { &mut constant } else { &mut rest };
            *part = part.clone() * dim.clone();
        }
        rest * constant
    }

    /// The sizes under `bindings`.
    ///
    /// # Errors
    /// `InvalidArgument` where a symbol is unbound or a size is negative.
    pub fn eval(&self, bindings: &Bindings) -> Result<Vec<usize>> {
        self.0.iter().map(|d| bindings.size(d)).collect()
    }
}

impl std::ops::Index<usize> for Shape {
    type Output = Dim;
    fn index(&self, axis: usize) -> &Dim {
        &self.0[axis]
    }
}

impl<D: Into<Dim>> FromIterator<D> for Shape {
    fn from_iter<I: IntoIterator<Item = D>>(iter: I) -> Self {
        Self::new(iter)
    }
}

impl<D: Into<Dim>, const N: usize> From<[D; N]> for Shape {
    fn from(dims: [D; N]) -> Self {
        Self::new(dims)
    }
}

impl From<Vec<Dim>> for Shape {
    fn from(dims: Vec<Dim>) -> Self {
        Self(dims.into())
    }
}

impl From<&[usize]> for Shape {
    fn from(dims: &[usize]) -> Self {
        Self::new(dims.iter().copied())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, dim) in self.0.iter().enumerate() {
            write!(f, "{}{dim}", if i == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Dtype and shape of a value: `f32[N, 384]`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Type {
    /// The element type.
    pub dtype: DType,
    /// The shape.
    pub shape: Shape,
}

impl Type {
    /// A type of these parts.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Self {
        Self { dtype, shape: shape.into() }
    }

    /// The number of dims.
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// The bytes of a dense value of this type; blocks lie along the last axis.
    pub fn bytes(&self) -> Dim {
        let block = Dim::from(self.dtype.block_elems());
        self.shape.elems().floor_div(&block) * self.dtype.block_bytes().into()
    }

    /// Dtype and sizes under `bindings`.
    ///
    /// # Errors
    /// `InvalidArgument` where a symbol is unbound or a size is negative.
    pub fn eval(&self, bindings: &Bindings) -> Result<TensorType> {
        Ok(TensorType { dtype: self.dtype, shape: self.shape.eval(bindings)? })
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Dtype and sizes of a concrete tensor.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// The sizes, outermost first.
    pub shape: Vec<usize>,
}

impl TensorType {
    /// A type of these parts.
    pub fn new(dtype: DType, shape: impl Into<Vec<usize>>) -> Self {
        Self { dtype, shape: shape.into() }
    }

    /// The number of elements, saturating.
    pub fn elems(&self) -> usize {
        self.shape.iter().fold(1usize, |a, &b| a.saturating_mul(b))
    }

    /// The bytes of a dense tensor of this type.
    ///
    /// # Errors
    /// `InvalidArgument` where the last axis is no multiple of the block, and on overflow.
    pub fn bytes(&self) -> Result<usize> {
        let row = self.shape.last().copied().unwrap_or(1);
        if !row.is_multiple_of(self.dtype.block_elems()) {
            crate::bail!(
                InvalidArgument,
                "the last axis of {self} is no multiple of {} elements",
                self.dtype.block_elems()
            );
        }
        // One axis of 0 makes it empty, however long the others are.
        if self.shape.contains(&0) {
            return Ok(0);
        }
        let outer = &self.shape[..self.shape.len().saturating_sub(1)];
        let rows = outer.iter().try_fold(1usize, |a, &b| a.checked_mul(b));
        match rows.zip(self.dtype.row_bytes(row)).and_then(|(rows, row)| rows.checked_mul(row)) {
            Some(bytes) => Ok(bytes),
            None => crate::bail!(InvalidArgument, "the size of {self} overflows"),
        }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
