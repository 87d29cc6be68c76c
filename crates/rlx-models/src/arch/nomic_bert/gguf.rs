//! The config from GGUF metadata, and as such.

use rlx_gguf::{Metadata, MetadataBuilder};
use rlx_ir::bail;
use rlx_ir::ops::activation::Activation;

use super::config::NomicBertConfig;
use crate::arch::activation::{activation, activation_word};
use crate::arch::bert::HIDDEN_ACT_KEY;
use crate::arch::gguf_keys::{GgufKeys, rows};
use crate::arch::llama::Biases;
use crate::files::NamedWeights;
use crate::files::limits::{self, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_VOCAB, MAX_WIDTH};
use crate::{Error, Result};

/// `general.architecture`.
pub(super) const NAME: &str = "nomic-bert";

/// Reads metadata; the sizes of the vocabularies are those of their tensors.
pub(super) fn read(metadata: &Metadata, weights: &NamedWeights) -> Result<NomicBertConfig> {
    let keys = GgufKeys::new(metadata)?;
    keys.refuse_causal()?;
    keys.refuse_rope_scaling()?;
    let hidden_size = keys.require_size("embedding_length", MAX_WIDTH)?;
    let num_heads = keys.require_size("attention.head_count", MAX_HEADS)?;
    let head_dim = match keys.size("attention.key_length", MAX_WIDTH)? {
        Some(head_dim) => head_dim,
        None => limits::quotient(
            &keys.key("embedding_length"),
            hidden_size,
            &keys.key("attention.head_count"),
            num_heads,
        )?,
    };
    let found = NomicBertConfig {
        vocab_size: rows(weights, "token_embd.weight", MAX_VOCAB)?,
        hidden_size,
        intermediate_size: keys.require_size("feed_forward_length", MAX_WIDTH)?,
        num_layers: keys.require_size("block_count", MAX_LAYERS)?,
        num_heads,
        head_dim,
        max_positions: keys.require_size("context_length", MAX_POSITIONS)?,
        type_vocab_size: match weights.contains("token_types.weight") {
            true => Some(rows(weights, "token_types.weight", MAX_VOCAB)?),
            false => None,
        },
        layer_norm_eps: keys.require_float("attention.layer_norm_epsilon")?,
        rope_theta: keys.float("rope.freq_base")?.unwrap_or(10_000.0),
        activation: activation(HIDDEN_ACT_KEY, metadata.str(HIDDEN_ACT_KEY)?.unwrap_or("silu"))?,
        attention_biases: Biases::AsStored,
        up_biases: Biases::AsStored,
        down_biases: Biases::AsStored,
    };
    if num_heads.checked_mul(head_dim).is_none_or(|n| n > MAX_WIDTH) {
        bail!(InvalidFile, "{num_heads} heads of {head_dim} elements are too many");
    }
    limits::positive(&keys.key("attention.layer_norm_epsilon"), found.layer_norm_eps)?;
    limits::positive(&keys.key("rope.freq_base"), found.rope_theta)?;
    found.rope().check(head_dim)?;
    Ok(found)
}

/// Adds the metadata.
pub(super) fn write(config: &NomicBertConfig, m: &mut MetadataBuilder) {
    let mut size = |key: &str, n: usize| m.set(&format!("{NAME}.{key}"), n as u32);
    size("block_count", config.num_layers);
    size("context_length", config.max_positions);
    size("embedding_length", config.hidden_size);
    size("feed_forward_length", config.intermediate_size);
    size("attention.head_count", config.num_heads);
    if config.num_heads * config.head_dim != config.hidden_size {
        size("attention.key_length", config.head_dim);
        size("attention.value_length", config.head_dim);
    }
    m.set("nomic-bert.attention.layer_norm_epsilon", config.layer_norm_eps as f32);
    m.set("nomic-bert.attention.causal", false);
    m.set("nomic-bert.rope.freq_base", config.rope_theta as f32);
    m.set("tokenizer.ggml.token_type_count", config.type_vocab_size.unwrap_or(0) as u32);
    if config.activation != Activation::Silu {
        m.set(HIDDEN_ACT_KEY, activation_word(config.activation));
    }
}
