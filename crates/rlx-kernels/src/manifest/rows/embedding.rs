//! Tables by ids.

use rlx_ir::DType;
use rlx_ir::DType::{F16, F32, I32, I64, U32};

use super::{NO_SCRATCH, PLAIN, Param, Read, Row, Write};
use crate::args::{Args, EmbeddingArgs};
use crate::source;

pub(super) const ROWS: &[Row] = &[Row {
    function: "embedding",
    source: &source::EMBEDDING,
    args: EmbeddingArgs::LAYOUT,
    buffers: &[("table", Param(0), Read), ("ids_of", Param(1), Read), ("out", Param(2), Write)],
    scratch: NO_SCRATCH,
    types: &EMBEDDINGS,
    constants: PLAIN,
}];

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
