//! The sizes of a BERT model, from `config.json` or GGUF metadata.

use rlx_gguf::Metadata;
use rlx_ir::bail;
use rlx_ir::ops::activation::Activation;

use crate::files::limits::{self, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_VOCAB, MAX_WIDTH};
use crate::files::{HfConfig, ModelConfig, ModelFiles, NamedWeights};
use crate::{Error, Result};

/// The GGUF key of the activation, with the words of a `config.json`; GELU where it is absent.
pub const HIDDEN_ACT_KEY: &str = "rlx.hidden_act";

/// The sizes of a BERT model. Every one is above 0 and bounded, and `num_heads` divides `hidden_size`.
#[derive(Clone, Debug, PartialEq)]
pub struct BertConfig {
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
    /// Positions that have a vector.
    pub max_positions: usize,
    /// Kinds of tokens that have a vector; the first is used.
    pub type_vocab_size: usize,
    /// Added to the variance in norms.
    pub layer_norm_eps: f64,
    /// Between the two layers of a feed-forward block.
    pub activation: Activation,
}

impl BertConfig {
    /// The config of a model.
    ///
    /// # Errors
    /// `InvalidFile` naming the key that is missing or out of bounds; `UnsupportedModel` for a variant of BERT that is
    /// another network.
    pub fn from_files(files: &ModelFiles, weights: &NamedWeights) -> Result<Self> {
        match files.config() {
            ModelConfig::Hf(config) => Self::from_hf(config),
            ModelConfig::Gguf(gguf) => {
                Self::from_gguf(gguf.metadata(), weights).map_err(|e| e.context(files.path().display()))
            }
        }
    }

    /// Reads a `config.json`.
    ///
    /// # Errors
    /// As [`from_files`](Self::from_files).
    pub fn from_hf(config: &HfConfig) -> Result<Self> {
        let within = |e: Error| e.context(config.path().display());
        if let Some(kind) = config.str("position_embedding_type")?
            && kind != "absolute"
        {
            return Err(within(unsupported("position_embedding_type", kind, "absolute")));
        }
        for key in ["is_decoder", "add_cross_attention"] {
            if config.bool(key)? == Some(true) {
                return Err(within(unsupported(key, "true", "false")));
            }
        }
        let found = Self {
            vocab_size: config.require_size("vocab_size", MAX_VOCAB)?,
            hidden_size: config.require_size("hidden_size", MAX_WIDTH)?,
            intermediate_size: config.require_size("intermediate_size", MAX_WIDTH)?,
            num_layers: config.require_size("num_hidden_layers", MAX_LAYERS)?,
            num_heads: config.require_size("num_attention_heads", MAX_HEADS)?,
            max_positions: config.require_size("max_position_embeddings", MAX_POSITIONS)?,
            type_vocab_size: config.size("type_vocab_size", MAX_VOCAB)?.unwrap_or(2),
            layer_norm_eps: config.f64("layer_norm_eps")?.unwrap_or(1e-12),
            activation: activation("hidden_act", config.str("hidden_act")?.unwrap_or("gelu"))
                .map_err(within)?,
        };
        limits::quotient("hidden_size", found.hidden_size, "num_attention_heads", found.num_heads)
            .map_err(within)?;
        limits::positive("layer_norm_eps", found.layer_norm_eps).map_err(within)?;
        Ok(found)
    }

    /// Reads GGUF metadata; the sizes of the vocabularies are those of their tensors.
    ///
    /// # Errors
    /// As [`from_files`](Self::from_files).
    pub fn from_gguf(metadata: &Metadata, weights: &NamedWeights) -> Result<Self> {
        let size = |key: &str, max| limits::size(key, metadata.require_usize(key)?, max);
        if metadata.bool("bert.attention.causal")? == Some(true) {
            return Err(unsupported("bert.attention.causal", "true", "false"));
        }
        let rows = |name: &str, max| -> Result<usize> {
            let ty = weights.require(name)?.ty;
            limits::size(
                &format!("the number of rows of tensor {name:?}"),
                ty.shape.first().copied().unwrap_or(0),
                max,
            )
        };
        let found = Self {
            vocab_size: rows("token_embd.weight", MAX_VOCAB)?,
            hidden_size: size("bert.embedding_length", MAX_WIDTH)?,
            intermediate_size: size("bert.feed_forward_length", MAX_WIDTH)?,
            num_layers: size("bert.block_count", MAX_LAYERS)?,
            num_heads: size("bert.attention.head_count", MAX_HEADS)?,
            max_positions: size("bert.context_length", MAX_POSITIONS)?,
            type_vocab_size: rows("token_types.weight", MAX_VOCAB)?,
            layer_norm_eps: f64::from(metadata.require_f32("bert.attention.layer_norm_epsilon")?),
            activation: activation(HIDDEN_ACT_KEY, metadata.str(HIDDEN_ACT_KEY)?.unwrap_or("gelu"))?,
        };
        limits::quotient(
            "bert.embedding_length",
            found.hidden_size,
            "bert.attention.head_count",
            found.num_heads,
        )?;
        limits::positive("bert.attention.layer_norm_epsilon", found.layer_norm_eps)?;
        Ok(found)
    }

    /// Components of a head's vectors.
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_heads
    }
}

/// The words that Hugging Face models use for the activation.
fn activation(key: &str, word: &str) -> Result<Activation> {
    Ok(match word {
        "gelu" => Activation::Gelu,
        "gelu_new" | "gelu_pytorch_tanh" => Activation::GeluTanh,
        "relu" => Activation::Relu,
        "silu" | "swish" => Activation::Silu,
        other => bail!(
            UnsupportedModel,
            "{key} \"{other}\" is not supported; supported are gelu, gelu_new, gelu_pytorch_tanh, relu, silu"
        ),
    })
}

fn unsupported(key: &str, found: &str, expected: &str) -> Error {
    let message = format!("{key} is {found}: such a model is not supported, only {expected}");
    Error::new(rlx_ir::ErrorKind::UnsupportedModel, message)
}
