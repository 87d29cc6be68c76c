//! Products of matrices.

use rlx_ir::DType;
use rlx_ir::DType::{F16, F32};

use super::{Elem, Fixed, NO_SCRATCH, Optional, Param, Read, Row, Use, Write};
use crate::args::{Args, MatMulArgs};
use crate::source;

/// Operands, bias, and what tiles are held in: halves where both operands are.
const FLOAT_TILES: &[&[DType]] = &[
    &[F32, F32, F32, F32],
    &[F32, F32, F16, F32],
    &[F32, F16, F32, F32],
    &[F32, F16, F16, F32],
    &[F16, F32, F32, F32],
    &[F16, F32, F16, F32],
];
const HALF_TILES: &[&[DType]] = &[&[F16, F16, F32, F16], &[F16, F16, F16, F16]];

const FEW_ROWS: &[&[DType]] = &[
    &[F32, F32, F32],
    &[F32, F32, F16],
    &[F32, F16, F32],
    &[F32, F16, F16],
    &[F16, F32, F32],
    &[F16, F32, F16],
    &[F16, F16, F32],
    &[F16, F16, F16],
];

const BUFFERS: &[(&str, Elem, Use)] = &[
    ("a", Param(0), Read),
    ("b", Param(1), Read),
    ("bias", Param(2), Optional),
    ("residual", Param(0), Optional),
    ("out", Param(0), Write),
];

const fn tiles(
    types: &'static [&'static [DType]],
    scratch: &'static [(&'static str, Elem, u32)],
    constants: &'static [(&'static str, &'static str)],
) -> Row {
    let (source, args) = (&source::MATMUL, MatMulArgs::LAYOUT);
    Row { function: "matmul", source, args, buffers: BUFFERS, scratch, types, constants }
}

/// For tiles of `side` x `side` results: rows of `steps` elements of both operands, each with `pad` elements (16 bytes)
/// behind it, and 8 rows of results for each of 4 simdgroups.
const fn scratch(side: u32, steps: u32, pad: u32) -> [(&'static str, Elem, u32); 2] {
    [("tiles", Param(3), 2 * side * (steps + pad)), ("strips", Fixed(F32), 4 * 8 * side / 2)]
}

/// 64 bytes of a row at a time; 128 where the tile is small, so that there are half as many barriers.
pub(super) const ROWS: &[Row] = &[
    tiles(FLOAT_TILES, &const { scratch(64, 16, 4) }, &[("tile64", ", 64, 64, 16")]),
    tiles(FLOAT_TILES, &const { scratch(32, 32, 4) }, &[("tile32", ", 32, 32, 32")]),
    tiles(HALF_TILES, &const { scratch(64, 32, 8) }, &[("tile64", ", 64, 64, 32")]),
    tiles(HALF_TILES, &const { scratch(32, 64, 8) }, &[("tile32", ", 32, 32, 64")]),
    Row {
        function: "matmul_few_rows",
        source: &source::FEW_ROWS,
        args: MatMulArgs::LAYOUT,
        buffers: BUFFERS,
        scratch: NO_SCRATCH,
        types: FEW_ROWS,
        constants: &[("1", ", 1"), ("4", ", 4")],
    },
];
