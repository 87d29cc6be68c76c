//! Tables by ids.

use rlx_ir::DType;
use rlx_ir::DType::{F16, F32, I32, I64, U32};

use super::{NO_SCRATCH, Optional, PLAIN, Param, Read, Row, SUMS, Write};
use crate::args::{Args, EmbeddingArgs, EmbeddingLayerNormArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[
    Row {
        function: "embedding",
        source: &source::EMBEDDING,
        args: EmbeddingArgs::LAYOUT,
        buffers: &[("table", Param(0), Read), ("ids_of", Param(1), Read), ("out", Param(2), Write)],
        scratch: NO_SCRATCH,
        types: &EMBEDDINGS,
        constants: PLAIN,
    },
    Row {
        function: "embedding_layer_norm",
        source: &source::EMBEDDING_LAYER_NORM,
        args: EmbeddingLayerNormArgs::LAYOUT,
        buffers: &[
            ("table0", Param(0), Read),
            ("ids0", Param(2), Read),
            ("table1", Param(1), Optional),
            ("ids1", Param(2), Optional),
            ("table2", Param(1), Optional),
            ("ids2", Param(2), Optional),
            ("weight", Param(3), Read),
            ("bias", Param(3), Optional),
            ("out", Param(4), Write),
        ],
        scratch: SUMS,
        types: &BLOCKS,
        constants: PLAIN,
    },
];

/// Tables by ids to results.
const EMBEDDINGS: [&[DType]; 12] = [
    &[F32, I32, F32],
    &[F32, I64, F32],
    &[F32, U32, F32],
    &[F32, I32, F16],
    &[F32, I64, F16],
    &[F32, U32, F16],
    &[F16, I32, F32],
    &[F16, I64, F32],
    &[F16, U32, F32],
    &[F16, I32, F16],
    &[F16, I64, F16],
    &[F16, U32, F16],
];

/// The first table, all others, ids and weights to results. Files keep positions in f32 where tokens are f16.
const BLOCKS: [&[DType]; 36] = [
    &[F32, F32, I32, F32, F32],
    &[F32, F32, I32, F32, F16],
    &[F32, F32, I32, F16, F32],
    &[F32, F32, I32, F16, F16],
    &[F32, F32, I64, F32, F32],
    &[F32, F32, I64, F32, F16],
    &[F32, F32, I64, F16, F32],
    &[F32, F32, I64, F16, F16],
    &[F32, F32, U32, F32, F32],
    &[F32, F32, U32, F32, F16],
    &[F32, F32, U32, F16, F32],
    &[F32, F32, U32, F16, F16],
    &[F16, F16, I32, F32, F32],
    &[F16, F16, I32, F32, F16],
    &[F16, F16, I32, F16, F32],
    &[F16, F16, I32, F16, F16],
    &[F16, F16, I64, F32, F32],
    &[F16, F16, I64, F32, F16],
    &[F16, F16, I64, F16, F32],
    &[F16, F16, I64, F16, F16],
    &[F16, F16, U32, F32, F32],
    &[F16, F16, U32, F32, F16],
    &[F16, F16, U32, F16, F32],
    &[F16, F16, U32, F16, F16],
    &[F16, F32, I32, F32, F32],
    &[F16, F32, I32, F32, F16],
    &[F16, F32, I32, F16, F32],
    &[F16, F32, I32, F16, F16],
    &[F16, F32, I64, F32, F32],
    &[F16, F32, I64, F32, F16],
    &[F16, F32, I64, F16, F32],
    &[F16, F32, I64, F16, F16],
    &[F16, F32, U32, F32, F32],
    &[F16, F32, U32, F32, F16],
    &[F16, F32, U32, F16, F32],
    &[F16, F32, U32, F16, F16],
];
