//! Regions that one kernel runs.

pub mod fused_region;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[fused_region::DEF];
