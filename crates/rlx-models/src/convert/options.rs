//! What a conversion is asked for, and what it did.

use std::num::NonZeroUsize;

use rlx_ir::DType;

use super::imatrix::Imatrix;

/// What a conversion is asked for.
#[derive(Clone, Debug)]
pub struct QuantizeOptions {
    /// The type of matrices: f32, f16, bf16 or a block type that GGUF has.
    pub ty: DType,
    /// How much each column of a matrix matters, for the block types that use it.
    pub imatrix: Option<Imatrix>,
    /// Threads that convert; `None` takes the processors that this process may use, 16 at most.
    pub threads: Option<NonZeroUsize>,
}

impl QuantizeOptions {
    /// Matrices of type `ty`, every column as important as the others, converted on all processors.
    pub fn new(ty: DType) -> Self {
        Self { ty, imatrix: None, threads: None }
    }
}

/// A matrix that could not have the type asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The tensor.
    pub name: String,
    /// Elements of a row, which the blocks of the type asked for do not divide.
    pub row_elems: usize,
    /// The type that it got.
    pub dtype: DType,
}

/// What a conversion did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Tensors that were written.
    pub tensors: usize,
    /// Bytes of their data.
    pub bytes: u64,
    /// Matrices that could not have the type asked for.
    pub fallbacks: Vec<Fallback>,
    /// Tensors of the input that the architecture does not use.
    pub skipped: Vec<String>,
    /// What the result lacks, for people.
    pub notes: Vec<String>,
}
