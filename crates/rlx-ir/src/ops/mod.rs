//! The built-in ops: one op, one file. [`TABLE`] lists each once.
//!
//! Every file holds the attribute struct, its doc (shapes, dtypes, numerics), shape and dtype rule, cost, reference
//! evaluation, decomposition, text form and the builder method.

pub mod elementwise;
pub mod matmul;
pub(crate) mod util;

use crate::op::OpDef;

/// The table of built-in ops, by family.
pub(crate) static TABLE: std::sync::LazyLock<Vec<OpDef>> = std::sync::LazyLock::new(|| {
    let families: [&[OpDef]; 3] = [elementwise::unary::DEFS, elementwise::binary::DEFS, matmul::DEFS];
    families.concat()
});
