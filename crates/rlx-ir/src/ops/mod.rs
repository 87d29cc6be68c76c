//! The built-in ops: one op, one file; a table lists each once.
//!
//! Every file holds the attribute struct, its doc (shapes, dtypes, numerics), shape and dtype rule, cost, reference
//! evaluation, decomposition, text form and the builder method.

pub mod activation;
pub mod attention;
mod composite;
pub mod elementwise;
pub mod embedding;
pub mod fused;
pub mod index;
pub mod matmul;
pub mod moe;
pub mod norm;
pub mod pooling;
pub mod position;
pub mod quant;
mod ragged;
pub mod reduce;
pub mod shape;
pub mod state;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod util;

use crate::op::OpDef;

/// The table of built-in ops, by family.
pub(crate) static TABLE: std::sync::LazyLock<Vec<OpDef>> = std::sync::LazyLock::new(|| FAMILIES.concat());

/// The rows of each family; a file with many ops of one kind has rows of its own.
const FAMILIES: &[&[OpDef]] = &[
    activation::DEFS,
    attention::DEFS,
    elementwise::unary::DEFS,
    elementwise::binary::DEFS,
    elementwise::compare::DEFS,
    elementwise::select::DEFS,
    elementwise::cast::DEFS,
    embedding::DEFS,
    fused::DEFS,
    index::DEFS,
    matmul::DEFS,
    moe::DEFS,
    norm::DEFS,
    pooling::DEFS,
    position::DEFS,
    quant::DEFS,
    reduce::reduce::DEFS,
    shape::DEFS,
    state::DEFS,
];
