//! Reductions.

use rlx_ir::DType;
use rlx_ir::DType::{I32, U32};

use super::{Elem, FLOATS, Fixed, NO_SCRATCH, Row, SIMDS, SUMS, X_TO_OUT};
use crate::args::{Args, ReduceArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[
    reduction("reduce_rows", SUMS, FLOATS, FLOAT_REDUCTIONS),
    reduction("reduce_rows", &[("scratch", Fixed(I32), SIMDS)], &[&[I32]], I32_REDUCTIONS),
    reduction("reduce_rows", &[("scratch", Fixed(U32), SIMDS)], &[&[U32]], U32_REDUCTIONS),
    reduction("reduce_columns", NO_SCRATCH, FLOATS, FLOAT_REDUCTIONS),
    reduction("reduce_columns", NO_SCRATCH, &[&[I32]], I32_REDUCTIONS),
    reduction("reduce_columns", NO_SCRATCH, &[&[U32]], U32_REDUCTIONS),
];

const fn reduction(
    function: &'static str,
    scratch: &'static [(&'static str, Elem, u32)],
    types: &'static [&'static [DType]],
    constants: &'static [(&'static str, &'static str)],
) -> Row {
    let (source, args) = (&source::REDUCE, ReduceArgs::LAYOUT);
    Row { function, source, args, buffers: X_TO_OUT, scratch, types, constants }
}

const FLOAT_REDUCTIONS: &[(&str, &str)] = &[
    ("sum", ", 0, float"),
    ("max", ", 1, float"),
    ("min", ", 2, float"),
    ("mean", ", 3, float"),
    ("prod", ", 4, float"),
];
const I32_REDUCTIONS: &[(&str, &str)] =
    &[("sum", ", 0, int"), ("max", ", 1, int"), ("min", ", 2, int"), ("prod", ", 4, int")];
const U32_REDUCTIONS: &[(&str, &str)] =
    &[("sum", ", 0, uint"), ("max", ", 1, uint"), ("min", ", 2, uint"), ("prod", ", 4, uint")];
