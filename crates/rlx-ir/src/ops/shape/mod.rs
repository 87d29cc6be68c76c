//! Ops that rearrange elements and compute nothing.

pub mod broadcast;
pub mod concat;
pub mod pad;
pub mod reshape;
pub mod slice;
pub mod transpose;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] =
    &[reshape::DEF, transpose::DEF, broadcast::DEF, slice::DEF, concat::DEF, pad::DEF];
