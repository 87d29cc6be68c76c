//! Matrix products, and products with what follows them.

pub mod linear;
#[allow(clippy::module_inception)]
pub mod matmul;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[linear::DEF, matmul::DEF];
