//! The sizes of a BERT model, from `config.json` or GGUF metadata.

use rlx_gguf::{Metadata, MetadataBuilder};
use rlx_ir::ops::activation::Activation;
use rlx_ir::{Graph, bail};

use crate::arch::activation::{activation, activation_word};
use crate::arch::encoder::{EncoderGraph, EncoderNetwork, EncoderShape, Positions};
use crate::arch::gguf_keys::{GgufKeys, rows};
use crate::arch::llama::Biases;
use crate::files::limits::{self, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_VOCAB, MAX_WIDTH};
use crate::files::{HfConfig, ModelConfig, ModelFiles, NamedWeights};
use crate::{Error, Result};

/// The GGUF key of the activation, with the words of a `config.json`; GELU where it is absent.
pub const HIDDEN_ACT_KEY: &str = "rlx.hidden_act";
/// The GGUF key of the rule for positions; `kept` is [`Positions::Kept`]. Where it is absent, models with a vocabulary other
/// than WordPiece, which are RoBERTas, have that rule.
pub const POSITIONS_KEY: &str = "rlx.positions";

/// The value of [`POSITIONS_KEY`].
const KEPT: &str = "kept";
/// The padding token of a RoBERTa whose config does not name one.
const ROBERTA_PAD: usize = 1;
/// The tables of token types and positions.
const TOKEN_TYPES: &str = "token_types.weight";
pub(super) const POSITIONS: &str = "position_embd.weight";

/// The sizes of a BERT or RoBERTa. Every one is above 0 and bounded, and `num_heads` divides `hidden_size`.
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
    /// The most tokens of a sequence. The table of positions has as many rows, and before them those up to the first position.
    pub max_positions: usize,
    /// Where tokens stand.
    pub positions: Positions,
    /// Kinds of tokens that have a vector, of which the first is used; `None` where there are no such vectors.
    pub type_vocab_size: Option<usize>,
    /// Added to the variance in norms.
    pub layer_norm_eps: f64,
    /// Between the two layers of a feed-forward block.
    pub activation: Activation,
    /// Of the products.
    pub biases: Biases,
}

impl BertConfig {
    /// The config of a model.
    ///
    /// # Errors
    /// `InvalidFile` naming the key that is missing or out of bounds; `UnsupportedModel` for a variant of BERT that is
    /// another network.
    pub fn from_files(files: &ModelFiles, weights: &NamedWeights) -> Result<Self> {
        match files.config() {
            ModelConfig::Hf(config) => {
                Self::from_hf(config, files.architecture() != "bert").map_err(|e| config.locate(e))
            }
            ModelConfig::Gguf(gguf) => {
                Self::from_gguf(gguf.metadata(), weights).map_err(|e| e.context(files.path().display()))
            }
        }
    }

    fn from_hf(config: &HfConfig, roberta: bool) -> Result<Self> {
        if let Some(kind) = config.str("position_embedding_type")?
            && kind != "absolute"
        {
            return Err(unsupported("position_embedding_type", kind, "absolute"));
        }
        for key in ["is_decoder", "add_cross_attention"] {
            if config.bool(key)? == Some(true) {
                return Err(unsupported(key, "true", "false"));
            }
        }
        let positions = match roberta {
            false => Positions::Places,
            true => match config.usize("pad_token_id")?.unwrap_or(ROBERTA_PAD) {
                pad if pad < MAX_VOCAB => Positions::NonPadding { pad: pad as i32 },
                pad => return Err(unsupported("pad_token_id", &pad.to_string(), "a token")),
            },
        };
        let rows = config.require_size("max_position_embeddings", MAX_POSITIONS)?;
        let Some(max_positions) = rows.checked_sub(positions.first()).filter(|n| *n > 0) else {
            bail!(
                InvalidFile,
                "max_position_embeddings is {rows}, but the first position is {}",
                positions.first()
            );
        };
        let found = Self {
            vocab_size: config.require_size("vocab_size", MAX_VOCAB)?,
            hidden_size: config.require_size("hidden_size", MAX_WIDTH)?,
            intermediate_size: config.require_size("intermediate_size", MAX_WIDTH)?,
            num_layers: config.require_size("num_hidden_layers", MAX_LAYERS)?,
            num_heads: config.require_size("num_attention_heads", MAX_HEADS)?,
            max_positions,
            positions,
            type_vocab_size: Some(config.size("type_vocab_size", MAX_VOCAB)?.unwrap_or(2)),
            layer_norm_eps: config.f64("layer_norm_eps")?.unwrap_or(1e-12),
            activation: activation("hidden_act", config.str("hidden_act")?.unwrap_or("gelu"))?,
            biases: Biases::Required,
        };
        limits::quotient("hidden_size", found.hidden_size, "num_attention_heads", found.num_heads)?;
        limits::positive("layer_norm_eps", found.layer_norm_eps)?;
        Ok(found)
    }

    fn from_gguf(metadata: &Metadata, weights: &NamedWeights) -> Result<Self> {
        let keys = GgufKeys::new(metadata)?;
        keys.refuse_causal()?;
        let roberta = match metadata.str(POSITIONS_KEY)? {
            Some(KEPT) => true,
            Some(other) => return Err(unsupported(POSITIONS_KEY, other, KEPT)),
            None => metadata.str("tokenizer.ggml.model")?.is_some_and(|model| model != "bert"),
        };
        let found = Self {
            vocab_size: rows(weights, "token_embd.weight", MAX_VOCAB)?,
            hidden_size: keys.require_size("embedding_length", MAX_WIDTH)?,
            intermediate_size: keys.require_size("feed_forward_length", MAX_WIDTH)?,
            num_layers: keys.require_size("block_count", MAX_LAYERS)?,
            num_heads: keys.require_size("attention.head_count", MAX_HEADS)?,
            max_positions: keys.require_size("context_length", MAX_POSITIONS)?,
            positions: if roberta { Positions::Kept } else { Positions::Places },
            type_vocab_size: match weights.contains(TOKEN_TYPES) {
                true => Some(rows(weights, TOKEN_TYPES, MAX_VOCAB)?),
                false => None,
            },
            layer_norm_eps: keys.require_float("attention.layer_norm_epsilon")?,
            activation: activation(HIDDEN_ACT_KEY, metadata.str(HIDDEN_ACT_KEY)?.unwrap_or("gelu"))?,
            biases: Biases::AsStored,
        };
        let (width, heads) = (keys.key("embedding_length"), keys.key("attention.head_count"));
        limits::quotient(&width, found.hidden_size, &heads, found.num_heads)?;
        limits::positive(&keys.key("attention.layer_norm_epsilon"), found.layer_norm_eps)?;
        Ok(found)
    }

    /// Components of a head's vectors.
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_heads
    }
}

impl EncoderNetwork for BertConfig {
    fn shape(&self) -> EncoderShape {
        EncoderShape {
            vocab_size: self.vocab_size,
            hidden_size: self.hidden_size,
            max_positions: self.max_positions,
            positions: self.positions,
            window: None,
        }
    }

    fn build(&self, weights: &NamedWeights, graph: &EncoderGraph) -> Result<Graph> {
        super::graph::build(self, weights, graph)
    }

    fn gguf_name(&self) -> &'static str {
        "bert"
    }

    fn write_metadata(&self, m: &mut MetadataBuilder) {
        let mut size = |key: &str, n: usize| m.set(&format!("bert.{key}"), n as u32);
        size("block_count", self.num_layers);
        size("context_length", self.max_positions);
        size("embedding_length", self.hidden_size);
        size("feed_forward_length", self.intermediate_size);
        size("attention.head_count", self.num_heads);
        m.set("bert.attention.layer_norm_epsilon", self.layer_norm_eps as f32);
        m.set("bert.attention.causal", false);
        m.set("tokenizer.ggml.token_type_count", self.type_vocab_size.unwrap_or(0) as u32);
        if self.activation != Activation::Gelu {
            m.set(HIDDEN_ACT_KEY, activation_word(self.activation));
        }
        if self.positions != Positions::Places {
            m.set(POSITIONS_KEY, KEPT);
        }
    }

    fn rows_before_gguf(&self) -> Option<(&'static str, usize)> {
        match self.positions.first() {
            0 => None,
            rows => Some((POSITIONS, rows)),
        }
    }
}

fn unsupported(key: &str, found: &str, expected: &str) -> Error {
    let message = format!("{key} is {found}: such a model is not supported, only {expected}");
    Error::new(rlx_ir::ErrorKind::UnsupportedModel, message)
}
