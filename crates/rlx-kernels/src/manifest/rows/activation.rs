//! Activations that are no part of a region.

use super::{FLOATS, NO_SCRATCH, PLAIN, Row, X_TO_OUT};
use crate::args::{Args, GluArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[Row {
    function: "glu",
    source: &source::GLU,
    args: GluArgs::LAYOUT,
    buffers: X_TO_OUT,
    scratch: NO_SCRATCH,
    types: FLOATS,
    constants: PLAIN,
}];
