//! What comes into a decoder's graph.

use rlx_ir::{Builder, DType, Dim, Value};

use super::limits::DecoderLimits;
use crate::Result;

/// Tokens of some sequences on one axis.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// Ids, `i32[N]`.
    pub ids: Value,
    /// Positions within their sequences, `i32[N]`.
    pub positions: Value,
    /// The first token of each sequence, and the number of all, `i32[R + 1]`.
    pub starts: Value,
    /// The number of tokens.
    pub n: Dim,
}

/// Keys and values of tokens before these, and of these, in pages.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// Where keys and values of the new tokens go, `i32[N]`.
    pub slots: Value,
    /// Tokens of each sequence, with the new ones, `i32[R]`.
    pub lengths: Value,
    /// Pages of each sequence, `i32[R, T]`.
    pub table: Value,
    /// The number of pages.
    pub pages: Dim,
    /// Tokens of a page.
    pub page_len: usize,
    /// The type of keys and values.
    pub dtype: DType,
}

/// The inputs of a step.
#[derive(Clone, Debug)]
pub(super) struct StepInputs {
    pub tokens: Tokens,
    pub cache: Cache,
    /// The tokens whose logits are wanted, `i32[L]`.
    pub rows: Value,
}

impl StepInputs {
    /// Declares them.
    ///
    /// # Errors
    /// `InvalidArgument` where a name is taken.
    pub fn declare(b: &mut Builder, limits: &DecoderLimits) -> Result<Self> {
        let n = b.symbol("N", limits.tokens);
        let r = b.symbol("R", limits.sequences);
        let t = b.symbol("T", limits.pages());
        let l = b.symbol("L", limits.rows);
        // Slots are i32.
        let pages = b.symbol("P", i32::MAX as usize / limits.page_len.max(1));
        let ids = b.input("ids", DType::I32, [n.clone()])?;
        let positions = b.input("positions", DType::I32, [n.clone()])?;
        let slots = b.input("slots", DType::I32, [n.clone()])?;
        let starts = b.input("starts", DType::I32, [r.clone() + 1.into()])?;
        let lengths = b.input("lengths", DType::I32, [r.clone()])?;
        let table = b.input("table", DType::I32, [r, t])?;
        let rows = b.input("rows", DType::I32, [l])?;
        Ok(Self {
            tokens: Tokens { ids, positions, starts, n },
            cache: Cache { slots, lengths, table, pages, page_len: limits.page_len, dtype: limits.kv_dtype },
            rows,
        })
    }
}
