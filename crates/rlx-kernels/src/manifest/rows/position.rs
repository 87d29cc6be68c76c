//! What depends on a token's position.

use rlx_ir::DType::{F32, I32};

use super::{FLOATS, Fixed, NO_SCRATCH, PLAIN, Param, Read, Row, Write};
use crate::args::{Args, RopeArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[Row {
    function: "rope",
    source: &source::ROPE,
    args: RopeArgs::LAYOUT,
    buffers: &[
        ("x", Param(0), Read),
        ("positions", Fixed(I32), Read),
        ("inv_freq", Fixed(F32), Read),
        ("out", Param(0), Write),
    ],
    scratch: NO_SCRATCH,
    types: FLOATS,
    constants: PLAIN,
}];
