//! From tokens to vectors.

use rlx_ir::DType::I32;

use super::{Elem, FLOATS, Fixed, NO_SCRATCH, PLAIN, Param, Read, Row, SUMS, Use, Write, X_TO_OUT};
use crate::args::{Args, L2NormalizeArgs, PoolArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[
    Row {
        function: "l2_normalize",
        source: &source::L2_NORMALIZE,
        args: L2NormalizeArgs::LAYOUT,
        buffers: X_TO_OUT,
        scratch: SUMS,
        types: FLOATS,
        constants: PLAIN,
    },
    Row {
        function: "pool",
        source: &source::POOL,
        args: PoolArgs::LAYOUT,
        buffers: POOL_BUFFERS,
        scratch: NO_SCRATCH,
        types: FLOATS,
        constants: POOL_MODES,
    },
    Row {
        function: "pool_l2_normalize",
        source: &source::POOL,
        args: PoolArgs::LAYOUT,
        buffers: POOL_BUFFERS,
        scratch: SUMS,
        types: FLOATS,
        constants: POOL_MODES,
    },
];

const POOL_BUFFERS: &[(&str, Elem, Use)] =
    &[("x", Param(0), Read), ("starts", Fixed(I32), Read), ("out", Param(0), Write)];

/// In the order of `PoolMode::WORDS`.
const POOL_MODES: &[(&str, &str)] = &[("mean", ", 0"), ("cls", ", 1"), ("last", ", 2"), ("max", ", 3")];
