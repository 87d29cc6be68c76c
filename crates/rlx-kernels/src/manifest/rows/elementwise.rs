//! Single elementwise ops that are compiled ahead.

use rlx_ir::DType;
use rlx_ir::DType::{Bool, F16, F32, I8, I16, I32, I64, U8, U32};

use super::{NO_SCRATCH, PLAIN, Param, Read, Row, Write};
use crate::args::{Args, CastArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[Row {
    function: "cast",
    source: &source::CAST,
    args: CastArgs::LAYOUT,
    buffers: &[("x", Param(0), Read), ("out", Param(1), Write)],
    scratch: NO_SCRATCH,
    types: &CASTS,
    constants: PLAIN,
}];

/// What `cast` goes between.
const CASTABLE: [DType; 9] = [F32, F16, I8, I16, I32, I64, U8, U32, Bool];

/// Every pair of different types.
const CAST_PAIRS: [[DType; 2]; 72] = {
    let mut pairs = [[F32; 2]; 72];
    let (mut from, mut at) = (0, 0);
    while from < CASTABLE.len() {
        let mut to = 0;
        while to < CASTABLE.len() {
            if from != to {
                pairs[at] = [CASTABLE[from], CASTABLE[to]];
                at += 1;
            }
            to += 1;
        }
        from += 1;
    }
    pairs
};

const CASTS: [&[DType]; 72] = {
    let mut lists: [&[DType]; 72] = [&[]; 72];
    let mut at = 0;
    while at < lists.len() {
        lists[at] = &CAST_PAIRS[at];
        at += 1;
    }
    lists
};
