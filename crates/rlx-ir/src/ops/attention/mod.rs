//! Attention over the ragged token axis, and over paged state.
//!
//! [`mask`] says which keys a query sees, [`scores`] what is done with them: both ops share both.

#[allow(clippy::module_inception)]
pub mod attention;
pub mod mask;
pub mod paged_attention;
pub mod scores;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[attention::DEF, paged_attention::DEF];
