//! Matrix products.

#[allow(clippy::module_inception)]
pub mod matmul;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[matmul::DEF];
