//! What only moves elements.

use rlx_ir::DType::{I16, I64, U8, U32};

use super::{NO_SCRATCH, PLAIN, Row, X_TO_OUT};
use crate::args::{Args, CopyArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[
    // One for each size of an element; the types stand for their bits.
    Row {
        function: "copy",
        source: &source::COPY,
        args: CopyArgs::LAYOUT,
        buffers: X_TO_OUT,
        scratch: NO_SCRATCH,
        types: &[&[U8], &[I16], &[U32], &[I64]],
        constants: PLAIN,
    },
];
