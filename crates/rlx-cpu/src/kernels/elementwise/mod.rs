//! Functions of single elements over whole slices.
//!
//! All floats; f16 and bf16 are computed in f32 and rounded once.

mod binary;
mod cast;
#[cfg(test)]
mod tests;
mod unary;

pub use binary::{Binary, binary, gated};
pub use cast::{Scalar, cast};
pub use unary::{Unary, unary};

/// Elements of one task.
pub(crate) const TASK_ELEMS: usize = 1 << 14;
