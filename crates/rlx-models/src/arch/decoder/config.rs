//! What there is to know about a decoder: sizes, and which of the options of a layer its layers have.

use rlx_ir::bail;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::norm::rms_norm::RmsNorm;

use crate::arch::rope::RopeConfig;
use crate::files::limits;
use crate::{Error, Result};

/// Whether the biases of some products are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Biases {
    /// There are none.
    Absent,
    /// Each is there.
    Required,
    /// Those in the file are used.
    AsStored,
}

/// Which tokens of its sequence a token sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Itself and those before it.
    Causal,
    /// All.
    Bidirectional,
}

/// The attention of all layers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionConfig {
    /// The factor of `q . k`.
    pub scale: f64,
    /// The largest absolute score, approached smoothly.
    pub softcap: Option<f64>,
    /// Biases of queries, keys and values.
    pub qkv_bias: Biases,
    /// The bias of the product after attention.
    pub output_bias: Biases,
    /// Whether each head of queries and keys is normalised before rope.
    pub qk_norm: bool,
    /// What the model was trained for.
    pub direction: Direction,
}

/// The feed-forward part of a layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FeedForward {
    /// `down(activation(gate(x)) * up(x))`.
    Gated {
        /// The length of the vector between the products.
        intermediate_size: usize,
        /// Biases of the products.
        bias: Biases,
    },
    /// A sum over the experts that a router chose, each gated as above.
    Experts(Experts),
}

/// A mixture of experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Experts {
    /// How many there are.
    pub count: usize,
    /// How many a token goes through.
    pub chosen: usize,
    /// The length of the vector between the products of one.
    pub intermediate_size: usize,
    /// Whether the probabilities of the chosen ones are scaled to a sum of 1.
    pub normalized: bool,
}

/// One layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerConfig {
    /// How many tokens back, itself included, a token sees; `None` is all. Where tokens see both ways, half of it on
    /// either side.
    pub window: Option<usize>,
    /// Rotary position embedding.
    pub rope: RopeConfig,
    /// The feed-forward part.
    pub feed_forward: FeedForward,
}

impl LayerConfig {
    /// The mask of this layer.
    pub fn mask(&self, direction: Direction) -> Mask {
        match (direction, self.window) {
            (Direction::Causal, None) => Mask::Causal,
            (Direction::Causal, Some(window)) => Mask::SlidingWindow { window },
            (Direction::Bidirectional, None) => Mask::None,
            (Direction::Bidirectional, Some(window)) => Mask::Local { window: window / 2 },
        }
    }
}

/// A checked configuration: every size is within [`limits`], and the sizes fit each other.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderConfig {
    /// The architecture's name, for the graph.
    pub architecture: &'static str,
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// The length of a token's vector.
    pub hidden_size: usize,
    /// Heads of queries.
    pub num_heads: usize,
    /// Heads of keys and values.
    pub num_kv_heads: usize,
    /// The length of a head's vector.
    pub head_dim: usize,
    /// The most tokens that the model takes.
    pub context_length: usize,
    /// All norms.
    pub norm: RmsNorm,
    /// The factor of the tokens' vectors.
    pub embedding_scale: f64,
    /// Attention.
    pub attention: AttentionConfig,
    /// The activation of the feed-forward parts.
    pub activation: Activation,
    /// Whether the results of attention and feed-forward part are normalised before they join the residual.
    pub post_norms: bool,
    /// The layers, at least one.
    pub layers: Vec<LayerConfig>,
    /// The largest absolute logit, approached smoothly.
    pub final_softcap: Option<f64>,
    /// Whether the table of token vectors is the head; `None` is where the file has no head of its own.
    pub tied_head: Option<bool>,
}

impl DecoderConfig {
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
        limits::positive("the epsilon of the norms", self.norm.eps)?;
        limits::positive("the scale of attention", self.attention.scale)?;
        for cap in [self.attention.softcap, self.final_softcap].into_iter().flatten() {
            limits::positive("a soft cap", cap)?;
        }
        for layer in &self.layers {
            layer.rope.check(self.head_dim)?;
            if let FeedForward::Experts(Experts { count, chosen, .. }) = layer.feed_forward
                && chosen > count
            {
                bail!(InvalidFile, "a token goes through {chosen} experts, but there are {count}");
            }
        }
        Ok(self)
    }
}
