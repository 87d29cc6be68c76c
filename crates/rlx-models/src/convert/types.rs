//! Which type each tensor gets.

use rlx_gguf::GgmlType;
use rlx_ir::quant::BlockType as B;
use rlx_ir::{DType, bail};

use crate::arch::fit;
use crate::{Error, Result};

/// Tables that are small, and whose errors would reach every token.
const TABLES: [&str; 2] = ["position_embd.weight", "token_types.weight"];

/// Whether matrices can have this type.
pub(super) fn check(ty: DType) -> Result<()> {
    let stored = GgmlType::from_dtype(ty).is_some();
    if !stored || !(ty.is_block() || matches!(ty, DType::F32 | DType::F16 | DType::BF16)) {
        bail!(InvalidArgument, "matrices cannot be stored as {ty}");
    }
    Ok(())
}

/// Whether a tensor is a matrix that gets the type asked for.
pub(super) fn is_matrix(name: &str, shape: &[usize]) -> bool {
    shape.len() >= 2 && name.ends_with(".weight") && !name.contains("_norm.") && !TABLES.contains(&name)
}

/// The type of a tensor in the result; integers stay what they are.
pub(super) fn target(name: &str, shape: &[usize], stored: DType, asked: DType) -> DType {
    match shape.last() {
        _ if !(stored.is_float() || stored.is_block()) => stored,
        Some(&row) if is_matrix(name, shape) => fit(asked, row),
        _ => DType::F32,
    }
}

/// The value of `general.file_type`: llama.cpp's number for files whose matrices mostly have this type.
pub(super) fn file_type(ty: DType) -> Option<u32> {
    Some(match ty {
        DType::F32 => 0,
        DType::F16 => 1,
        DType::BF16 => 32,
        DType::Block(B::Q4_0) => 2,
        DType::Block(B::Q4_1) => 3,
        DType::Block(B::Q8_0) => 7,
        DType::Block(B::Q5_0) => 8,
        DType::Block(B::Q5_1) => 9,
        DType::Block(B::Q4_K) => 14,
        DType::Block(B::Q6_K) => 18,
        _ => return None,
    })
}
