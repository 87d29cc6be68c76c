//! Writes into state.

use rlx_ir::DType::I32;

use super::{FLOATS_AND_WEIGHTS, Fixed, PLAIN, Param, Read, Row, SUMS, Write};
use crate::args::{Args, KvWriteArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[Row {
    function: "kv_write",
    source: &source::KV_WRITE,
    args: KvWriteArgs::LAYOUT,
    buffers: &[("x", Param(0), Read), ("slots", Fixed(I32), Read), ("state", Param(1), Write)],
    scratch: SUMS,
    types: FLOATS_AND_WEIGHTS,
    constants: PLAIN,
}];
