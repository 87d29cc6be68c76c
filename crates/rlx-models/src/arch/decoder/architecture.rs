//! What makes an architecture: the facts that hold for all of its models, as data.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::position::rope::RopeStyle;

use super::config::{Biases, DecoderConfig};
use super::gguf_write::GgufWriter;
use crate::Result;
use crate::arch::gguf_keys::GgufKeys;
use crate::files::HfConfig;

/// An architecture of decoders.
#[derive(Debug)]
pub struct DecoderArchitecture {
    /// Its name in [`SUPPORTED`](crate::arch::SUPPORTED).
    pub name: &'static str,
    /// Whether each head of queries and keys is normalised.
    pub qk_norm: bool,
    /// Whether the results of attention and feed-forward part are normalised.
    pub post_norms: bool,
    /// Whether the tokens' vectors are multiplied by the root of their length.
    pub scaled_embeddings: bool,
    /// The activation of the feed-forward parts.
    pub activation: Activation,
    /// The Hugging Face layout.
    pub hf: HfFacts,
    /// The GGUF layout.
    pub gguf: GgufFacts,
}

impl DecoderArchitecture {
    /// The factor of the tokens' vectors.
    pub(super) fn embedding_scale(&self, hidden_size: usize) -> f64 {
        if self.scaled_embeddings { libm::sqrt(hidden_size as f64) } else { 1.0 }
    }
}

/// What holds for an architecture's models in the Hugging Face layout.
#[derive(Debug)]
pub struct HfFacts {
    /// Where models for more than text keep the part of the config that counts.
    pub text_section: Option<&'static str>,
    /// The key of the activation.
    pub activation_key: &'static str,
    /// The words for the activation that the architecture has.
    pub activation_words: &'static [&'static str],
    /// Whether the norms' weights are stored with 1 subtracted.
    pub unit_offset_norms: bool,
    /// Biases of queries, keys and values.
    pub qkv_bias: HfBias,
    /// The bias of the product after attention.
    pub output_bias: HfBias,
    /// Biases of the feed-forward products.
    pub mlp_bias: HfBias,
    /// What absent keys stand for.
    pub defaults: HfDefaults,
    /// Completes what is read for all architectures with what only this one has.
    pub finish: fn(&HfConfig, &mut DecoderConfig) -> Result<()>,
}

/// When there are biases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HfBias {
    /// Never.
    Never,
    /// Always.
    Always,
    /// Where this key is true.
    Key(&'static str),
}

/// What absent keys of a `config.json` stand for; `None` where a key must be there.
#[derive(Clone, Copy, Debug)]
pub struct HfDefaults {
    /// `vocab_size`.
    pub vocab_size: Option<usize>,
    /// `num_attention_heads`.
    pub num_heads: Option<usize>,
    /// `num_key_value_heads`; `None` is as many as heads.
    pub num_kv_heads: Option<usize>,
    /// `head_dim`; `None` shares `hidden_size` among the heads.
    pub head_dim: Option<usize>,
    /// `max_position_embeddings`.
    pub context_length: usize,
    /// `rope_theta`.
    pub rope_theta: f64,
    /// `tie_word_embeddings`.
    pub tied_head: bool,
}

/// What holds for an architecture's models in GGUF files.
#[derive(Debug)]
pub struct GgufFacts {
    /// `general.architecture`.
    pub architecture: &'static str,
    /// In which order the rows of queries and keys are stored.
    pub rope_style: RopeStyle,
    /// Biases of queries, keys and values.
    pub qkv_bias: Biases,
    /// Whether there may be experts.
    pub experts: bool,
    /// Completes what is read for all architectures with what only this one has.
    pub finish: fn(&GgufKeys<'_>, &mut DecoderConfig) -> Result<()>,
    /// Writes what `finish` reads.
    pub(in crate::arch) write: fn(&mut GgufWriter<'_>, &DecoderConfig),
}
