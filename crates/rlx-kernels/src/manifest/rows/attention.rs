//! Attention: one row for each size of a head.

use rlx_ir::DType::{Bool, F16, F32, I32};

use super::{Elem, FLOATS, FLOATS_AND_WEIGHTS, Fixed, Optional, Param, Read, Row, Use, Write};
use crate::args::{Args, AttentionArgs};
use crate::source;

const BUFFERS: &[(&str, Elem, Use)] = &[
    ("q", Param(0), Read),
    ("k", Param(0), Read),
    ("v", Param(0), Read),
    ("starts", Fixed(I32), Read),
    ("custom", Fixed(Bool), Optional),
    ("bias_f32", Fixed(F32), Optional),
    ("bias_f16", Fixed(F16), Optional),
    ("out", Param(0), Write),
];

const PAGED_BUFFERS: &[(&str, Elem, Use)] = &[
    ("q", Param(0), Read),
    ("k", Param(1), Read),
    ("v", Param(1), Read),
    ("starts", Fixed(I32), Read),
    ("lengths", Fixed(I32), Read),
    ("table", Fixed(I32), Read),
    ("out", Param(0), Write),
];

/// Heads of up to `$dim` elements.
macro_rules! rows {
    ($function:literal, $source:ident, $buffers:ident, $types:ident, $dim:literal) => {
        Row {
            function: $function,
            source: &source::$source,
            args: AttentionArgs::LAYOUT,
            buffers: $buffers,
            scratch: &[("parts", Fixed(F32), MOST_SIMDS * ($dim + 3))],
            types: $types,
            constants: &[(stringify!($dim), concat!(", ", $dim))],
        }
    };
}

/// Heads of up to `$dim` elements, `$part` for each of `$split` simdgroups, and keys in blocks of `$block`.
macro_rules! tiles {
    ($function:literal, $source:ident, $buffers:ident, $types:ident, $dim:literal: $split:literal, $part:literal, $block:literal) => {
        Row {
            function: $function,
            source: &source::$source,
            args: AttentionArgs::LAYOUT,
            buffers: $buffers,
            scratch: &[
                ("tile", Fixed(F32), $block * ($dim + 4)),
                // Four groups of 8 queries; where simdgroups share queries, weights have squares of their own.
                ("scores", Fixed(F32), 4 * $split * $split * 8 * ($block + 4)),
            ],
            types: $types,
            constants: &[(stringify!($dim), concat!(", ", $part, ", ", $split, ", ", $block))],
        }
    };
}

/// The simdgroups of the largest threadgroup that has a query for itself.
const MOST_SIMDS: u32 = 8;

pub(super) const ROWS: &[Row] = &[
    rows!("attention_rows", ATTENTION_ROWS, BUFFERS, FLOATS, 32),
    rows!("attention_rows", ATTENTION_ROWS, BUFFERS, FLOATS, 64),
    rows!("attention_rows", ATTENTION_ROWS, BUFFERS, FLOATS, 96),
    rows!("attention_rows", ATTENTION_ROWS, BUFFERS, FLOATS, 128),
    rows!("attention_rows", ATTENTION_ROWS, BUFFERS, FLOATS, 256),
    tiles!("attention_tiles", ATTENTION_TILES, BUFFERS, FLOATS, 32: 1, 32, 32),
    tiles!("attention_tiles", ATTENTION_TILES, BUFFERS, FLOATS, 64: 1, 64, 32),
    tiles!("attention_tiles", ATTENTION_TILES, BUFFERS, FLOATS, 96: 1, 96, 32),
    tiles!("attention_tiles", ATTENTION_TILES, BUFFERS, FLOATS, 128: 1, 128, 32),
    // The registers of one simdgroup do not hold 8 queries and results of 256 elements.
    tiles!("attention_tiles", ATTENTION_TILES, BUFFERS, FLOATS, 256: 2, 128, 16),
    rows!("paged_attention_rows", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 32),
    rows!("paged_attention_rows", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 64),
    rows!("paged_attention_rows", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 96),
    rows!("paged_attention_rows", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 128),
    rows!("paged_attention_rows", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 256),
    tiles!("paged_attention_tiles", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 32: 1, 32, 32),
    tiles!("paged_attention_tiles", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 64: 1, 64, 32),
    tiles!("paged_attention_tiles", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 96: 1, 96, 32),
    tiles!("paged_attention_tiles", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 128: 1, 128, 32),
    // The registers of one simdgroup do not hold 8 queries and results of 256 elements.
    tiles!("paged_attention_tiles", PAGED_ATTENTION, PAGED_BUFFERS, FLOATS_AND_WEIGHTS, 256: 2, 128, 16),
];
