//! The config from a `config.json`, of transformers before or since its version 5.

use rlx_ir::bail;
use serde_json::Value;

use super::config::ModernBertConfig;
use crate::arch::activation::activation;
use crate::arch::llama::Biases;
use crate::files::HfConfig;
use crate::files::limits::{MAX_HEADS, MAX_LAYERS, MAX_POSITIONS, MAX_VOCAB, MAX_WIDTH};
use crate::{Error, Result};

/// One layer in so many sees all tokens, where the config does not list them.
const GLOBAL_EVERY: usize = 3;
/// The kinds of layers in `layer_types` and `rope_parameters`.
const FULL: &str = "full_attention";
const SLIDING: &str = "sliding_attention";

/// Reads a `config.json`.
pub(super) fn read(config: &HfConfig) -> Result<ModernBertConfig> {
    if config.section("rope_scaling")?.is_some() {
        bail!(UnsupportedModel, "rope_scaling is set, which is not supported");
    }
    let num_layers = config.require_size("num_hidden_layers", MAX_LAYERS)?;
    let biases = |key: &str| -> Result<Biases> {
        Ok(if config.bool(key)? == Some(true) { Biases::Required } else { Biases::Absent })
    };
    let found = ModernBertConfig {
        vocab_size: config.require_size("vocab_size", MAX_VOCAB)?,
        hidden_size: config.require_size("hidden_size", MAX_WIDTH)?,
        intermediate_size: config.require_size("intermediate_size", MAX_WIDTH)?,
        num_heads: config.require_size("num_attention_heads", MAX_HEADS)?,
        max_positions: config.require_size("max_position_embeddings", MAX_POSITIONS)?,
        norm_eps: config.f64("norm_eps")?.unwrap_or(1e-5),
        local_layers: local_layers(config, num_layers)?,
        // The whole width; half of it lies on either side.
        window: config.size("local_attention", MAX_POSITIONS)?.unwrap_or(128) / 2,
        global_rope_theta: theta(config, FULL, "global_rope_theta")?.unwrap_or(160_000.0),
        local_rope_theta: theta(config, SLIDING, "local_rope_theta")?.unwrap_or(10_000.0),
        activation: activation("hidden_activation", config.str("hidden_activation")?.unwrap_or("gelu"))?,
        norm_biases: biases("norm_bias")?,
        attention_biases: biases("attention_bias")?,
        mlp_biases: biases("mlp_bias")?,
    };
    found.check()
}

fn local_layers(config: &HfConfig, num_layers: usize) -> Result<Vec<bool>> {
    let Some(types) = config.get("layer_types") else {
        let every = config.size("global_attn_every_n_layers", MAX_LAYERS)?.unwrap_or(GLOBAL_EVERY);
        return Ok((0..num_layers).map(|i| !i.is_multiple_of(every)).collect());
    };
    let types = types.as_array().map(Vec::as_slice).unwrap_or_default();
    if types.len() != num_layers {
        bail!(InvalidFile, "layer_types is no list of {num_layers} kinds, one for each layer");
    }
    let is_local = |ty: &Value| match ty.as_str() {
        Some(FULL) => Ok(false),
        Some(SLIDING) => Ok(true),
        _ => {
            let ty: String = ty.to_string().chars().take(80).collect();
            bail!(UnsupportedModel, "layer_types has {ty}, which is not supported; {FULL} and {SLIDING} are")
        }
    };
    types.iter().map(is_local).collect()
}

/// The base of the frequencies in layers of a kind.
fn theta(config: &HfConfig, kind: &str, old_key: &str) -> Result<Option<f64>> {
    let section = match config.section("rope_parameters")? {
        Some(all) => all.section(kind)?,
        None => None,
    };
    if let Some(rope) = section {
        if let Some(other) = rope.str("rope_type")?.filter(|ty| *ty != "default") {
            bail!(UnsupportedModel, "rope_type \"{other}\" is not supported; default is");
        }
        if let Some(theta) = rope.f64("rope_theta")? {
            return Ok(Some(theta));
        }
    }
    config.f64(old_key)
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;
    use serde_json::json;

    use super::*;

    fn with(extra: Value) -> Result<ModernBertConfig> {
        let mut keys = json!({
            "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 5, "intermediate_size": 96,
            "max_position_embeddings": 128, "vocab_size": 100
        });
        let (Value::Object(keys), Value::Object(extra)) = (&mut keys, extra) else { panic!("objects") };
        keys.extend(extra);
        {
            let config = HfConfig::new("m/config.json", keys.clone());
            read(&config).map_err(|e| config.locate(e))
        }
    }

    #[test]
    fn both_generations_of_keys_say_the_same() {
        let old = with(json!({
            "global_attn_every_n_layers": 2, "local_attention": 32, "global_rope_theta": 8e4, "local_rope_theta": 2e4
        }));
        let (full, sliding) = ("full_attention", "sliding_attention");
        let new = with(json!({
            "layer_types": [full, sliding, full, sliding, full], "local_attention": 32,
            "rope_parameters": {
                full: { "rope_type": "default", "rope_theta": 8e4 }, sliding: { "rope_theta": 2e4 }
            }
        }));
        let old = old.unwrap();
        assert_eq!(old, new.unwrap());
        assert_eq!((old.window, old.global_rope_theta, old.local_rope_theta), (16, 8e4, 2e4));
        assert_eq!(old.local_layers, [false, true, false, true, false]);
        let plain = with(json!({})).unwrap();
        assert_eq!(plain.local_layers, [false, true, true, false, true]);
        assert_eq!((plain.window, plain.global_rope_theta, plain.local_rope_theta), (64, 16e4, 1e4));
    }

    #[test]
    fn what_is_wrong_is_named() {
        use ErrorKind::{InvalidFile, UnsupportedModel};
        for (keys, kind, part) in [
            (json!({ "layer_types": ["full_attention"] }), InvalidFile, "layer_types"),
            (json!({ "layer_types": vec!["linear"; 5] }), UnsupportedModel, "linear"),
            (
                json!({ "rope_parameters": { "full_attention": { "rope_type": "yarn" } } }),
                UnsupportedModel,
                "yarn",
            ),
            (json!({ "rope_scaling": { "factor": 2 } }), UnsupportedModel, "rope_scaling"),
            (json!({ "hidden_activation": "mish" }), UnsupportedModel, "mish"),
            (json!({ "num_attention_heads": 5 }), InvalidFile, "number of heads"),
            (json!({ "global_rope_theta": -1 }), InvalidFile, "rotary"),
        ] {
            let e = with(keys).unwrap_err();
            assert!(e.kind() == kind && e.message().contains(part), "{e}");
            assert!(e.message().starts_with("m/config.json"), "{e}");
        }
    }
}
