//! Ops that read or write by index, or make indices.

pub mod argmax;
pub mod gather;
pub mod iota;
pub mod scatter;
pub mod top_k;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[gather::DEF, scatter::DEF, iota::DEF, argmax::DEF, top_k::DEF];
