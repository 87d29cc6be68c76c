//! From token vectors to one vector for each sequence.

pub mod l2_normalize;
pub mod pool;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[l2_normalize::DEF, pool::DEF];
