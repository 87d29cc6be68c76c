//! Tables of vectors that are looked up by id.

#[allow(clippy::module_inception)]
pub mod embedding;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[embedding::DEF];
