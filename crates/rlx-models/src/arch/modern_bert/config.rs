//! The sizes of a ModernBERT model.

use rlx_gguf::MetadataBuilder;
use rlx_ir::Graph;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::position::rope::RopeStyle;

use crate::Result;
use crate::arch::encoder::{EncoderGraph, EncoderNetwork, EncoderShape, Positions};
use crate::arch::llama::Biases;
use crate::arch::rope::{RopeConfig, RopeScaling};
use crate::files::limits;
use crate::files::{ModelConfig, ModelFiles, NamedWeights};

/// The sizes of a ModernBERT model, each above 0 and bounded; `num_heads` divides `hidden_size`.
#[derive(Clone, Debug, PartialEq)]
pub struct ModernBertConfig {
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Components of a token's vector.
    pub hidden_size: usize,
    /// Components between the two layers of a feed-forward block.
    pub intermediate_size: usize,
    /// Attention heads of a layer.
    pub num_heads: usize,
    /// The most tokens of a sequence.
    pub max_positions: usize,
    /// Added to the variance in norms.
    pub norm_eps: f64,
    /// Of each layer, whether tokens see only those near them.
    pub local_layers: Vec<bool>,
    /// How far away, on either side, a token may be that is seen in such a layer.
    pub window: usize,
    /// The base of the rotary frequencies in layers where tokens see all others.
    pub global_rope_theta: f64,
    /// The base of the rotary frequencies in layers where they see those near them.
    pub local_rope_theta: f64,
    /// Of the gate.
    pub activation: Activation,
    /// Of the norms.
    pub norm_biases: Biases,
    /// Of the products around attention.
    pub attention_biases: Biases,
    /// Of the products of feed-forward blocks.
    pub mlp_biases: Biases,
}

impl ModernBertConfig {
    /// The config of a model.
    ///
    /// # Errors
    /// `InvalidFile` naming the key that is missing or out of bounds; `UnsupportedModel` for a variant that is another network.
    pub fn from_files(files: &ModelFiles, weights: &NamedWeights) -> Result<Self> {
        match files.config() {
            ModelConfig::Hf(config) => super::hf::read(config).map_err(|e| config.locate(e)),
            ModelConfig::Gguf(gguf) => {
                super::gguf::read(gguf.metadata(), weights).map_err(|e| e.context(files.path().display()))
            }
        }
    }

    /// Checks how the sizes fit each other; each by itself was checked where it was read.
    pub(super) fn check(self) -> Result<Self> {
        limits::quotient("the hidden size", self.hidden_size, "the number of heads", self.num_heads)?;
        limits::positive("the epsilon of the norms", self.norm_eps)?;
        for theta in [self.global_rope_theta, self.local_rope_theta] {
            limits::positive("the base of the rotary frequencies", theta)?;
            self.rope(theta).check(self.head_dim())?;
        }
        Ok(self)
    }

    /// Components of a head's vectors.
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_heads
    }

    /// The rotary position embedding with this base.
    pub(super) fn rope(&self, theta: f64) -> RopeConfig {
        RopeConfig { style: RopeStyle::Half, theta, rotary_dim: self.head_dim(), scaling: RopeScaling::None }
    }
}

impl EncoderNetwork for ModernBertConfig {
    fn shape(&self) -> EncoderShape {
        EncoderShape {
            vocab_size: self.vocab_size,
            hidden_size: self.hidden_size,
            max_positions: self.max_positions,
            positions: Positions::Places,
            window: self.local_layers.contains(&true).then_some(self.window),
        }
    }

    fn build(&self, weights: &NamedWeights, graph: &EncoderGraph) -> Result<Graph> {
        super::graph::build(self, weights, graph)
    }

    fn gguf_name(&self) -> &'static str {
        super::gguf::NAME
    }

    fn write_metadata(&self, metadata: &mut MetadataBuilder) {
        super::gguf::write(self, metadata);
    }
}
