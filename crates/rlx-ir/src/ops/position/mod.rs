//! Position encodings.

pub mod rope;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[rope::DEF];
