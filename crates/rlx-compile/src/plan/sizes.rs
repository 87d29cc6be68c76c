//! The table of sizes: every distinct size expression of a plan, evaluated once per binding.

use rlx_ir::{Bindings, Dim};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};

/// An index into a [`SizeTable`] and into the [`Sizes`] made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SizeId(u32);

/// Distinct size expressions.
#[derive(Clone, Debug, Default)]
pub struct SizeTable {
    dims: Vec<Dim>,
    ids: FxHashMap<Dim, SizeId>,
}

impl SizeTable {
    /// The entry of `dim`, made where it is new.
    pub fn intern(&mut self, dim: &Dim) -> SizeId {
        if let Some(id) = self.ids.get(dim) {
            return *id;
        }
        let id = SizeId(u32::try_from(self.dims.len()).unwrap_or(u32::MAX));
        self.dims.push(dim.clone());
        self.ids.insert(dim.clone(), id);
        id
    }

    /// The expression of `id`.
    pub fn dim(&self, id: SizeId) -> &Dim {
        &self.dims[id.0 as usize]
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.dims.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.dims.is_empty()
    }

    /// Evaluates every entry.
    ///
    /// # Errors
    /// `InvalidArgument` where a symbol is unbound or a size is negative.
    pub fn bind(&self, bindings: &Bindings) -> Result<Sizes> {
        let mut sizes = Sizes(Vec::with_capacity(self.dims.len()));
        self.bind_into(bindings, &mut sizes)?;
        Ok(sizes)
    }

    /// Evaluates every entry into `sizes`, without allocating where it was used for this table before.
    ///
    /// # Errors
    /// As [`bind`](Self::bind).
    pub fn bind_into(&self, bindings: &Bindings, sizes: &mut Sizes) -> Result<()> {
        sizes.0.clear();
        for dim in &self.dims {
            let value = match dim.as_const() {
                Some(c) => c,
                None => bindings.eval(dim)?,
            };
            match usize::try_from(value) {
                Ok(v) => sizes.0.push(v),
                Err(_) => rlx_ir::bail!(InvalidArgument, "size {dim} is {value}"),
            }
        }
        Ok(())
    }
}

/// The values of a [`SizeTable`] under one binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes(Vec<usize>);

impl Sizes {
    /// The value of `id`.
    pub fn get(&self, id: SizeId) -> usize {
        self.0[id.0 as usize]
    }
}
