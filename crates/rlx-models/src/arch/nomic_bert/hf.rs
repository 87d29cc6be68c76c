//! The config from a `config.json` of either layout.

use rlx_ir::bail;
use rlx_ir::ops::activation::Activation;

use super::config::NomicBertConfig;
use crate::arch::activation::activation;
use crate::arch::gguf_keys::rows;
use crate::arch::llama::Biases;
use crate::files::limits::{self, MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_VOCAB, MAX_WIDTH};
use crate::files::{HfConfig, NamedWeights};
use crate::{Error, Result};

/// A key that only the layout of the models on the hub has.
const HUB: &str = "n_embd";
/// The base of the rotary frequencies where the config names none.
const THETA: f64 = 1000.0;
/// The models on the hub round the width of their feed-forward blocks up to a multiple of this.
const INNER_MULTIPLE: usize = 256;

/// Flags of the hub's layout with the value that makes it this network; it is meant too where the key is absent.
const FLAGS: &[(&str, bool)] = &[
    ("causal", false),
    ("parallel_block", false),
    ("prenorm", false),
    ("rotary_emb_interleaved", false),
    ("scale_attn_by_inverse_layer_idx", false),
    ("scale_attn_weights", true),
    ("use_rms_norm", false),
];

/// Reads a `config.json`.
pub(super) fn read(config: &HfConfig, weights: &NamedWeights) -> Result<NomicBertConfig> {
    for key in ["moe_every_n_layers", "num_experts", "num_local_experts"] {
        if config.usize(key)?.unwrap_or(0) > 0 {
            bail!(
                UnsupportedModel,
                "{key} is above 0: the model is a mixture of experts (nomic-bert-moe), which is not supported"
            );
        }
    }
    let found = if config.has_key(HUB) { hub(config, weights)? } else { transformers(config)? };
    if found.num_heads.checked_mul(found.head_dim).is_none_or(|n| n > MAX_WIDTH) {
        bail!(InvalidFile, "{} heads of {} elements are too many", found.num_heads, found.head_dim);
    }
    limits::positive("the epsilon of the norms", found.layer_norm_eps)?;
    limits::positive("the base of the rotary frequencies", found.rope_theta)?;
    found.rope().check(found.head_dim)?;
    Ok(found)
}

/// The layout of transformers.
fn transformers(config: &HfConfig) -> Result<NomicBertConfig> {
    let hidden_size = config.require_size("hidden_size", MAX_WIDTH)?;
    let num_heads = config.require_size("num_attention_heads", MAX_HEADS)?;
    Ok(NomicBertConfig {
        vocab_size: config.require_size("vocab_size", MAX_VOCAB)?,
        hidden_size,
        intermediate_size: config.require_size("intermediate_size", MAX_WIDTH)?,
        num_layers: config.require_size("num_hidden_layers", MAX_LAYERS)?,
        num_heads,
        head_dim: match config.size("head_dim", MAX_WIDTH)? {
            Some(head_dim) => head_dim,
            None => limits::quotient("hidden_size", hidden_size, "num_attention_heads", num_heads)?,
        },
        max_positions: config.size("max_position_embeddings", MAX_POSITIONS)?.unwrap_or(2048),
        type_vocab_size: Some(config.size("type_vocab_size", MAX_VOCAB)?.unwrap_or(2)),
        layer_norm_eps: config.f64("layer_norm_eps")?.unwrap_or(1e-12),
        rope_theta: theta(config)?,
        activation: activation("hidden_act", config.str("hidden_act")?.unwrap_or("silu"))?,
        attention_biases: Biases::Absent,
        up_biases: Biases::Absent,
        down_biases: Biases::Absent,
    })
}

fn theta(config: &HfConfig) -> Result<f64> {
    let Some(rope) = config.section("rope_parameters")? else {
        return Ok(config.f64("rope_theta")?.unwrap_or(THETA));
    };
    match rope.str("rope_type")?.unwrap_or("default") {
        "default" => Ok(rope.f64("rope_theta")?.unwrap_or(THETA)),
        other => bail!(UnsupportedModel, "rope_type \"{other}\" is not supported; default is"),
    }
}

/// The layout of the models on the hub.
fn hub(config: &HfConfig, weights: &NamedWeights) -> Result<NomicBertConfig> {
    for (key, expected) in FLAGS {
        if config.bool(key)?.is_some_and(|found| found != *expected) {
            bail!(UnsupportedModel, "{key} is {}, which is not supported; {expected} is", !expected);
        }
    }
    if config.get("rotary_emb_scale_base").is_some() {
        bail!(UnsupportedModel, "rotary_emb_scale_base is set, which is not supported; null is");
    }
    let fraction = config.f64("rotary_emb_fraction")?.unwrap_or(0.0);
    if fraction != 1.0 {
        bail!(UnsupportedModel, "rotary_emb_fraction is {fraction}, which is not supported; 1 is");
    }
    match config.require_str("activation_function")? {
        "swiglu" => {}
        other => bail!(UnsupportedModel, "activation_function \"{other}\" is not supported; swiglu is"),
    }
    let biases = |key: &str| -> Result<Biases> {
        Ok(if config.bool(key)?.unwrap_or(true) { Biases::Required } else { Biases::Absent })
    };
    let hidden_size = config.require_size(HUB, MAX_WIDTH)?;
    let num_heads = config.require_size("n_head", MAX_HEADS)?;
    let vocab_size = config.require_size("vocab_size", MAX_VOCAB)?;
    let multiple = config.size("pad_vocab_size_multiple", MAX_VOCAB)?.unwrap_or(1);
    let inner = config.size("n_inner", MAX_WIDTH)?.unwrap_or(4 * hidden_size);
    let stored = rows(weights, "blk.0.ffn_up.weight", MAX_WIDTH)?;
    Ok(NomicBertConfig {
        vocab_size: vocab_size.next_multiple_of(multiple),
        hidden_size,
        intermediate_size: if stored == inner.next_multiple_of(INNER_MULTIPLE) { stored } else { inner },
        num_layers: config.require_size("n_layer", MAX_LAYERS)?,
        num_heads,
        head_dim: limits::quotient(HUB, hidden_size, "n_head", num_heads)?,
        max_positions: positions(config)?,
        type_vocab_size: config.usize("type_vocab_size")?.filter(|n| *n > 0),
        layer_norm_eps: config.f64("layer_norm_epsilon")?.unwrap_or(1e-5),
        rope_theta: config.f64("rotary_emb_base")?.unwrap_or(10_000.0),
        activation: Activation::Silu,
        attention_biases: biases("qkv_proj_bias")?,
        up_biases: biases("mlp_fc1_bias")?,
        down_biases: biases("mlp_fc2_bias")?,
    })
}

/// Frequencies that are scaled by the length of the text are those that the model was trained with up to that length.
fn positions(config: &HfConfig) -> Result<usize> {
    let all = config.require_size("n_positions", MAX_POSITIONS)?;
    Ok(match config.f64("rotary_scaling_factor")? {
        None => all,
        Some(_) => all.min(config.size("max_trained_positions", MAX_POSITIONS)?.unwrap_or(2048)),
    })
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;
    use serde_json::{Value, json};

    use super::*;

    fn refusal(key: &str, value: Value) -> Error {
        let mut keys = json!({
            "n_embd": 64, "n_head": 4, "n_layer": 2, "n_inner": 96, "n_positions": 128, "vocab_size": 100,
            "activation_function": "swiglu", "rotary_emb_fraction": 1.0, "rotary_emb_scale_base": null
        });
        keys[key] = value;
        let Value::Object(keys) = keys else { panic!("an object") };
        let weights = NamedWeights::empty("m");
        read(&HfConfig::new("m/config.json", keys), &weights).unwrap_err()
    }

    #[test]
    fn other_networks_are_refused_by_name() {
        for (key, value) in [
            ("moe_every_n_layers", json!(2)),
            ("num_experts", json!(8)),
            ("prenorm", json!(true)),
            ("causal", json!(true)),
            ("scale_attn_weights", json!(false)),
            ("rotary_emb_fraction", json!(0.5)),
            ("rotary_emb_scale_base", json!(512)),
            ("activation_function", json!("gelu")),
        ] {
            let e = refusal(key, value);
            assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains(key), "{e}");
        }
        let e = refusal("n_head", json!(null));
        assert!(e.kind() == ErrorKind::InvalidFile && e.message().contains("n_head"), "{e}");
    }
}
