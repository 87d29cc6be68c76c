//! Normalisation over the last axis, and softmax.

pub mod add_layer_norm;
pub mod add_rms_norm;
pub mod layer_norm;
pub mod rms_norm;
pub mod softmax;

use crate::op::OpDef;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] =
    &[add_layer_norm::DEF, add_rms_norm::DEF, layer_norm::DEF, rms_norm::DEF, softmax::DEF];
