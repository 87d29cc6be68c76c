//! Symbols, their bounds, and their sizes in one run.

use std::sync::Arc;

use crate::dim::{Bound, Dim};
use crate::error::{Error, Result};
use crate::types::Shape;

/// The symbols that a graph declares, with upper bounds, single and joint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    names: Vec<Arc<str>>,
    bounds: Vec<Bound>,
}

impl Symbols {
    /// Declares `name`, at most `max` where given. Declaring it again tightens its bound.
    pub fn declare(&mut self, name: &str, max: Option<i64>) -> Dim {
        if !self.contains(name) {
            self.names.push(name.into());
        }
        let of = Dim::symbol(name);
        if let Some(max) = max {
            self.bound(of.clone(), max);
        }
        of
    }

    /// Adds an upper bound of a symbol or of a product of symbols.
    pub fn bound(&mut self, of: Dim, max: i64) {
        match self.bounds.iter_mut().find(|b| b.of == of) {
            Some(b) => b.max = b.max.min(max),
            None => self.bounds.push(Bound { of, max }),
        }
    }

    /// The declared names, in order of declaration.
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The bounds, in order of declaration.
    pub fn bounds(&self) -> &[Bound] {
        &self.bounds
    }

    /// Whether `name` is declared.
    pub fn contains(&self, name: &str) -> bool {
        self.names.iter().any(|n| &**n == name)
    }

    /// The largest value of `dim`, where its symbols are bounded.
    pub fn upper_bound(&self, dim: &Dim) -> Option<i64> {
        dim.upper_bound(&self.bounds)
    }

    /// Checks that `bindings` gives every symbol a size within every bound.
    ///
    /// # Errors
    /// `InvalidArgument` naming the symbol or the bound.
    pub fn check(&self, bindings: &Bindings) -> Result<()> {
        for name in &self.names {
            if bindings.get(name).is_none() {
                crate::bail!(InvalidArgument, "symbol {name} is not bound to a size");
            }
        }
        for b in &self.bounds {
            let value = bindings.eval(&b.of)?;
            if value > b.max {
                crate::bail!(InvalidArgument, "{} is {value}, but was compiled for at most {}", b.of, b.max);
            }
        }
        Ok(())
    }
}

/// The sizes of symbols in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings(Vec<(Arc<str>, i64)>);

impl Bindings {
    /// No symbol bound.
    pub fn new() -> Self {
        Self::default()
    }

    /// The size of `name`.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.0.iter().find(|(n, _)| &**n == name).map(|(_, v)| *v)
    }

    /// Binds `name` to `size`.
    ///
    /// # Errors
    /// `InvalidArgument` where it is bound to another size.
    pub fn bind(&mut self, name: &str, size: usize) -> Result<()> {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        match self.get(name) {
            Some(old) if old != size => {
                crate::bail!(InvalidArgument, "symbol {name} is {old} in one operand and {size} in another")
            }
            Some(_) => Ok(()),
            None => {
                self.0.push((name.into(), size));
                Ok(())
            }
        }
    }

    /// The value of `dim`.
    ///
    /// # Errors
    /// `InvalidArgument` where a symbol is unbound.
    pub fn eval(&self, dim: &Dim) -> Result<i64> {
        dim.eval(&|name| self.get(name))
    }

    /// The value of `dim` as a size.
    ///
    /// # Errors
    /// `InvalidArgument` where a symbol is unbound or the value is negative.
    pub fn size(&self, dim: &Dim) -> Result<usize> {
        let value = self.eval(dim)?;
        match usize::try_from(value) {
            Ok(v) => Ok(v),
            Err(_) => crate::bail!(InvalidArgument, "size {dim} is {value}"),
        }
    }

    /// Binds the plain symbols of `shape` to `sizes`; [`verify`](Self::verify) checks the rest once all are bound.
    ///
    /// # Errors
    /// `InvalidArgument` where ranks differ or a symbol is bound to another size.
    pub fn unify(&mut self, shape: &Shape, sizes: &[usize]) -> Result<()> {
        if shape.rank() != sizes.len() {
            crate::bail!(InvalidArgument, "expected shape {shape}, got {sizes:?}");
        }
        for (dim, &size) in shape.dims().iter().zip(sizes) {
            if let Some(name) = dim.as_symbol() {
                self.bind(name, size)?;
            }
        }
        Ok(())
    }

    /// Checks that `shape` has exactly these `sizes`.
    ///
    /// # Errors
    /// `InvalidArgument` where it has not.
    pub fn verify(&self, shape: &Shape, sizes: &[usize]) -> Result<()> {
        let expected = shape.eval(self)?;
        if expected != sizes {
            crate::bail!(InvalidArgument, "expected shape {shape} = {expected:?}, got {sizes:?}");
        }
        Ok(())
    }
}
