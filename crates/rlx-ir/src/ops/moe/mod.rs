//! Mixtures of experts.

#[allow(clippy::module_inception)]
pub mod moe;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[moe::DEF];
