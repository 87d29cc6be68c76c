//! Ops that write states.

pub mod kv_write;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[kv_write::DEF];
