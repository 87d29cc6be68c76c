//! Which type each tensor gets.

use rlx_gguf::GgmlType;
use rlx_ir::{DType, bail};

use crate::arch::fit;
use crate::{Error, Result};

/// Tables that are small, and whose errors would reach every token.
const TABLES: [&str; 2] = ["position_embd.weight", "token_types.weight"];
/// The routers of experts are small too, and an error chooses others.
const ROUTER: &str = ".ffn_gate_inp.weight";

/// Whether matrices can have this type.
pub(super) fn check(ty: DType) -> Result<()> {
    let stored = GgmlType::from_dtype(ty).is_some();
    let activation = matches!(ty, DType::Block(block) if block.is_activation());
    if !stored || activation || !(ty.is_block() || matches!(ty, DType::F32 | DType::F16 | DType::BF16)) {
        bail!(InvalidArgument, "matrices cannot be stored as {ty}");
    }
    Ok(())
}

/// Whether a tensor is a matrix that gets the type asked for. Those of layers after pooling do not: they are few, and their
/// errors would stand in the vectors as they are.
pub(super) fn is_matrix(name: &str, shape: &[usize]) -> bool {
    shape.len() >= 2
        && !name.starts_with("dense")
        && name.ends_with(".weight")
        && !name.contains("_norm.")
        && !name.ends_with(ROUTER)
        && !TABLES.contains(&name)
}

/// The type of a tensor in the result; integers stay what they are.
pub(super) fn target(name: &str, shape: &[usize], stored: DType, asked: DType) -> DType {
    match shape.last() {
        _ if !(stored.is_float() || stored.is_block()) => stored,
        Some(&row) if is_matrix(name, shape) => fit(asked, row),
        _ => DType::F32,
    }
}

/// llama.cpp's numbers for files whose matrices mostly have one type; of the mixtures of K types the smallest.
const FILE_TYPES: [(&str, u32); 27] = [
    ("f32", 0),
    ("f16", 1),
    ("q4_0", 2),
    ("q4_1", 3),
    ("q8_0", 7),
    ("q5_0", 8),
    ("q5_1", 9),
    ("q2_k", 10),
    ("q3_k", 11),
    ("q4_k", 14),
    ("q5_k", 16),
    ("q6_k", 18),
    ("iq2_xxs", 19),
    ("iq2_xs", 20),
    ("iq3_xxs", 23),
    ("iq1_s", 24),
    ("iq4_nl", 25),
    ("iq3_s", 26),
    ("iq2_s", 28),
    ("iq4_xs", 30),
    ("iq1_m", 31),
    ("bf16", 32),
    ("tq1_0", 36),
    ("tq2_0", 37),
    ("mxfp4", 38),
    ("nvfp4", 39),
    ("q1_0", 40),
];

/// The value of `general.file_type` for matrices of type `ty`.
pub(super) fn file_type(ty: DType) -> Option<u32> {
    FILE_TYPES.iter().find(|(name, _)| *name == ty.name()).map(|(_, number)| *number)
}
