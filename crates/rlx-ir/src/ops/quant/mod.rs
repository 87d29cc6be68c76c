//! Ops between floats and block types.

pub mod dequantize;
pub mod quantize;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[quantize::DEF, dequantize::DEF];
