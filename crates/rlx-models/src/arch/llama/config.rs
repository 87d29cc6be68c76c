//! What there is to know about a Llama: sizes, norms, rope, attention.

use rlx_ir::bail;

use crate::arch::rope::RopeConfig;
use crate::files::limits;
use crate::{Error, Result};

/// Whether the biases of some products are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Biases {
    /// There are none; tensors of that name are not used.
    Absent,
    /// Each is there.
    Required,
    /// Those in the file are used.
    AsStored,
}

/// A checked configuration: every size is within [`limits`], and the sizes fit each other.
#[derive(Clone, Debug, PartialEq)]
pub struct LlamaConfig {
    /// The architecture's name, for the graph.
    pub architecture: String,
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// The length of a token's vector.
    pub hidden_size: usize,
    /// The length of the vector within the feed-forward part.
    pub intermediate_size: usize,
    /// Layers.
    pub num_layers: usize,
    /// Heads of queries.
    pub num_heads: usize,
    /// Heads of keys and values.
    pub num_kv_heads: usize,
    /// The length of a head's vector.
    pub head_dim: usize,
    /// What the norms add to the mean of squares.
    pub rms_norm_eps: f64,
    /// Rotary position embedding.
    pub rope: RopeConfig,
    /// How many tokens back, itself included, a token sees; `None` is all.
    pub sliding_window: Option<usize>,
    /// The most tokens that the model takes.
    pub context_length: usize,
    /// Whether the table of token vectors is the head; `None` is where the file has no head of its own.
    pub tied_head: Option<bool>,
    /// Biases of the products around attention.
    pub attention_bias: Biases,
    /// Biases of the feed-forward products.
    pub mlp_bias: Biases,
}

impl LlamaConfig {
    /// Checks how the sizes fit each other; each by itself was checked where it was read.
    pub(super) fn check(self) -> Result<Self> {
        limits::quotient(
            "the number of heads",
            self.num_heads,
            "the number of key-value heads",
            self.num_kv_heads,
        )?;
        if self.num_heads.checked_mul(self.head_dim).is_none_or(|n| n > limits::MAX_WIDTH) {
            bail!(InvalidFile, "{} heads of {} elements are too many", self.num_heads, self.head_dim);
        }
        limits::positive("the epsilon of the norms", self.rms_norm_eps)?;
        self.rope.check(self.head_dim)?;
        Ok(self)
    }
}
