//! The sizes of a NomicBERT model.

use rlx_gguf::MetadataBuilder;
use rlx_ir::Graph;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::position::rope::RopeStyle;

use crate::Result;
use crate::arch::encoder::{EncoderGraph, EncoderNetwork, EncoderShape, Positions};
use crate::arch::llama::Biases;
use crate::arch::rope::{RopeConfig, RopeScaling};
use crate::files::{ModelConfig, ModelFiles, NamedWeights};

/// The sizes of a NomicBERT model, each above 0 and bounded.
#[derive(Clone, Debug, PartialEq)]
pub struct NomicBertConfig {
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Components of a token's vector.
    pub hidden_size: usize,
    /// Components between the two layers of a feed-forward block.
    pub intermediate_size: usize,
    /// Layers.
    pub num_layers: usize,
    /// Attention heads of a layer.
    pub num_heads: usize,
    /// Components of a head's vectors.
    pub head_dim: usize,
    /// The most tokens of a sequence.
    pub max_positions: usize,
    /// Kinds of tokens that have a vector, of which the first is used; `None` where there are no such vectors.
    pub type_vocab_size: Option<usize>,
    /// Added to the variance in norms.
    pub layer_norm_eps: f64,
    /// The base of the rotary frequencies.
    pub rope_theta: f64,
    /// Of the gate.
    pub activation: Activation,
    /// Of the products around attention.
    pub attention_biases: Biases,
    /// Of gate and up.
    pub up_biases: Biases,
    /// Of down.
    pub down_biases: Biases,
}

impl NomicBertConfig {
    /// The config of a model.
    ///
    /// # Errors
    /// `InvalidFile` naming the key that is missing or out of bounds; `UnsupportedModel` for a variant that is another network.
    pub fn from_files(files: &ModelFiles, weights: &NamedWeights) -> Result<Self> {
        match files.config() {
            ModelConfig::Hf(config) => super::hf::read(config, weights).map_err(|e| config.locate(e)),
            ModelConfig::Gguf(gguf) => {
                super::gguf::read(gguf.metadata(), weights).map_err(|e| e.context(files.path().display()))
            }
        }
    }

    /// Its rotary position embedding.
    pub(super) fn rope(&self) -> RopeConfig {
        RopeConfig {
            style: RopeStyle::Half,
            theta: self.rope_theta,
            rotary_dim: self.head_dim,
            scaling: RopeScaling::None,
        }
    }
}

impl EncoderNetwork for NomicBertConfig {
    fn shape(&self) -> EncoderShape {
        EncoderShape {
            vocab_size: self.vocab_size,
            hidden_size: self.hidden_size,
            max_positions: self.max_positions,
            positions: Positions::Places,
            window: None,
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
