//! The config from GGUF metadata, and as such.

use rlx_gguf::{Metadata, MetadataBuilder, Value};
use rlx_ir::bail;

use super::config::ModernBertConfig;
use crate::arch::activation::{activation, activation_word};
use crate::arch::gguf_keys::{GgufKeys, rows};
use crate::arch::llama::Biases;
use crate::files::NamedWeights;
use crate::files::limits::{MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_VOCAB, MAX_WIDTH};
use crate::{Error, Result};

/// `general.architecture`.
pub(super) const NAME: &str = "modern-bert";
/// One layer in so many sees all tokens, where the file does not say.
const GLOBAL_EVERY: usize = 3;

const EPS: &str = "attention.layer_norm_epsilon";
/// Under which some converters stored the epsilon of the norms.
const EPS_ELSEWHERE: &str = "attention.layer_norm_rms_epsilon";
const PATTERN: &str = "attention.sliding_window_pattern";
const WINDOW: &str = "attention.sliding_window";

/// Reads metadata; the size of the vocabulary is that of its tensor.
pub(super) fn read(metadata: &Metadata, weights: &NamedWeights) -> Result<ModernBertConfig> {
    let keys = GgufKeys::new(metadata)?;
    keys.refuse_causal()?;
    keys.refuse_rope_scaling()?;
    let num_layers = keys.require_size("block_count", MAX_LAYERS)?;
    let window = metadata.usize(&keys.key(WINDOW))?.unwrap_or(0);
    let local_layers = match window {
        0 => vec![false; num_layers],
        _ => local_layers(&keys, num_layers)?,
    };
    let act = keys.key("hidden_activation");
    let found = ModernBertConfig {
        vocab_size: rows(weights, "token_embd.weight", MAX_VOCAB)?,
        hidden_size: keys.require_size("embedding_length", MAX_WIDTH)?,
        intermediate_size: keys.require_size("feed_forward_length", MAX_WIDTH)?,
        num_heads: keys.require_size("attention.head_count", MAX_HEADS)?,
        max_positions: keys.require_size("context_length", MAX_POSITIONS)?,
        norm_eps: match keys.float(EPS)? {
            Some(eps) => eps,
            None => match keys.float(EPS_ELSEWHERE)? {
                Some(eps) => eps,
                None => keys.require_float(EPS)?,
            },
        },
        local_layers,
        window: window.min(MAX_POSITIONS) / 2,
        global_rope_theta: keys.float("rope.freq_base")?.unwrap_or(10_000.0),
        local_rope_theta: keys.float("rope.freq_base_swa")?.unwrap_or(10_000.0),
        activation: activation(&act, metadata.str(&act)?.unwrap_or("gelu"))?,
        norm_biases: Biases::AsStored,
        attention_biases: Biases::AsStored,
        mlp_biases: Biases::AsStored,
    };
    found.check()
}

/// A number n: every n-th layer from the first sees all tokens; or a flag for each layer.
fn local_layers(keys: &GgufKeys<'_>, num_layers: usize) -> Result<Vec<bool>> {
    let key = keys.key(PATTERN);
    if let Some(Value::Array(_)) = keys.metadata().get(&key) {
        let flags = keys.metadata().bools(&key)?.unwrap_or_default();
        if flags.len() < num_layers {
            bail!(InvalidFile, "{key} has {} flags for {num_layers} layers", flags.len());
        }
        return Ok(flags[..num_layers].to_vec());
    }
    // With 0 no layer sees all.
    let every = keys.metadata().usize(&key)?.unwrap_or(GLOBAL_EVERY);
    Ok((0..num_layers).map(|i| every == 0 || !i.is_multiple_of(every)).collect())
}

/// Adds the metadata.
pub(super) fn write(config: &ModernBertConfig, m: &mut MetadataBuilder) {
    let key = |name: &str| format!("{NAME}.{name}");
    for (name, size) in [
        ("block_count", config.local_layers.len()),
        ("context_length", config.max_positions),
        ("embedding_length", config.hidden_size),
        ("feed_forward_length", config.intermediate_size),
        ("attention.head_count", config.num_heads),
        ("vocab_size", config.vocab_size),
    ] {
        m.set(&key(name), size as u32);
    }
    if config.local_layers.contains(&true) {
        // The whole width; half of it lies on either side.
        m.set(&key(WINDOW), 2 * config.window as u32);
        match every(&config.local_layers) {
            Some(n) => m.set(&key(PATTERN), n as u32),
            None => m.set_numbers(&key(PATTERN), &config.local_layers),
        }
    }
    m.set(&key(EPS), config.norm_eps as f32);
    m.set(&key("rope.freq_base"), config.global_rope_theta as f32);
    m.set(&key("rope.freq_base_swa"), config.local_rope_theta as f32);
    m.set(&key("rope.scaling.type"), "none");
    m.set(&key("attention.causal"), false);
    m.set(&key("hidden_activation"), activation_word(config.activation));
}

/// The n of a pattern in which every n-th layer from the first is not local; `None` where no n says that.
fn every(local: &[bool]) -> Option<usize> {
    (1..=local.len()).find(|n| local.iter().enumerate().all(|(i, local)| *local != i.is_multiple_of(*n)))
}
