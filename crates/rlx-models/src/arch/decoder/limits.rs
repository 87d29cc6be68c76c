//! The largest sizes of a step.

use rlx_ir::DType;

use crate::arch::weight_type::WeightType;

/// The largest sizes that one step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderLimits {
    /// New tokens of one step, all sequences together.
    pub tokens: usize,
    /// Sequences of one step.
    pub sequences: usize,
    /// Tokens of one step whose logits are wanted.
    pub rows: usize,
    /// Tokens of one sequence, those in the cache included.
    pub context: usize,
    /// Tokens of a page.
    pub page_len: usize,
    /// The type of keys and values in the cache: a float type.
    pub kv_dtype: DType,
    /// The type of the matrices.
    pub weights: WeightType,
}

impl DecoderLimits {
    /// Pages of one sequence.
    pub fn pages(&self) -> usize {
        self.context.div_ceil(self.page_len.max(1))
    }
}
