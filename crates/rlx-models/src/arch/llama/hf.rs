//! The configuration from a `config.json`.

use rlx_ir::bail;
use rlx_ir::ops::position::rope::RopeStyle;

use super::config::{Biases, LlamaConfig};
use crate::arch::rope::{RopeConfig, RopeScaling, yarn_attention_factor};
use crate::files::{HfConfig, limits};
use crate::{Error, Result};

/// The window of a Mistral whose config does not speak of one.
const MISTRAL_WINDOW: usize = 4096;

impl LlamaConfig {
    /// Reads the `config.json` of a Llama or Mistral.
    ///
    /// # Errors
    /// `InvalidFile` naming file and key; `UnsupportedModel` for variants that would compute something else.
    pub fn from_hf(config: &HfConfig) -> Result<Self> {
        read(config).and_then(Self::check).map_err(|e| match e.message().starts_with(&place(config)) {
            true => e,
            false => e.context(place(config)),
        })
    }
}

fn place(config: &HfConfig) -> String {
    config.path().display().to_string()
}

fn read(config: &HfConfig) -> Result<LlamaConfig> {
    let architecture = config.str("model_type")?.unwrap_or("llama").to_owned();
    let mistral = architecture == "mistral";
    refuse_variants(config)?;
    let hidden_size = config.require_size("hidden_size", limits::MAX_WIDTH)?;
    let num_heads = config.require_size("num_attention_heads", limits::MAX_HEADS)?;
    let head_dim = match config.size("head_dim", limits::MAX_WIDTH)? {
        Some(head_dim) => head_dim,
        None => limits::quotient("hidden_size", hidden_size, "num_attention_heads", num_heads)?,
    };
    let context_length = config.size("max_position_embeddings", limits::MAX_POSITIONS)?.unwrap_or(2048);
    let bias =
        |key| Ok::<_, Error>(if config.bool(key)? == Some(true) { Biases::Required } else { Biases::Absent });
    let sliding_window = match (mistral, config.has_key("sliding_window")) {
        (true, false) => Some(MISTRAL_WINDOW),
        (true, true) => config.size("sliding_window", limits::MAX_POSITIONS)?,
        (false, _) => None,
    };
    Ok(LlamaConfig {
        vocab_size: config.require_size("vocab_size", limits::MAX_VOCAB)?,
        hidden_size,
        intermediate_size: config.require_size("intermediate_size", limits::MAX_WIDTH)?,
        num_layers: config.require_size("num_hidden_layers", limits::MAX_LAYERS)?,
        num_heads,
        num_kv_heads: config.size("num_key_value_heads", limits::MAX_HEADS)?.unwrap_or(num_heads),
        head_dim,
        rms_norm_eps: config.f64("rms_norm_eps")?.unwrap_or(1e-6),
        rope: rope(config, head_dim, context_length)?,
        sliding_window,
        context_length,
        tied_head: Some(config.bool("tie_word_embeddings")?.unwrap_or(false)),
        attention_bias: bias("attention_bias")?,
        mlp_bias: bias("mlp_bias")?,
        architecture,
    })
}

/// What would change the result, and is not built.
fn refuse_variants(config: &HfConfig) -> Result<()> {
    if let Some(act) = config.str("hidden_act")?
        && !["silu", "swish"].contains(&act)
    {
        bail!(UnsupportedModel, "hidden_act \"{act}\" is not supported; silu is");
    }
    if let Some(section) = config.section("quantization_config")? {
        let method = section.str("quant_method")?.unwrap_or("unknown").to_owned();
        bail!(
            UnsupportedModel,
            "the weights are quantised by the method \"{method}\", which is not supported; take the model's GGUF or float weights"
        );
    }
    Ok(())
}

fn rope(config: &HfConfig, head_dim: usize, context_length: usize) -> Result<RopeConfig> {
    let section = match config.section("rope_parameters")? {
        Some(section) => Some(section),
        None => config.section("rope_scaling")?,
    };
    let in_section = |key: &str| section.as_ref().map_or(Ok(None), |s| s.f64(key));
    let theta = match in_section("rope_theta")? {
        Some(theta) => theta,
        None => config.f64("rope_theta")?.unwrap_or(10_000.0),
    };
    for factor in [in_section("partial_rotary_factor")?, config.f64("partial_rotary_factor")?] {
        if factor.is_some_and(|f| f != 1.0) {
            bail!(UnsupportedModel, "partial_rotary_factor other than 1 is not supported");
        }
    }
    let scaling = match &section {
        Some(section) => scaling(section, context_length)?,
        None => RopeScaling::None,
    };
    Ok(RopeConfig { style: RopeStyle::Half, theta, rotary_dim: head_dim, scaling })
}

fn scaling(section: &HfConfig, context_length: usize) -> Result<RopeScaling> {
    let kind = match section.str("rope_type")? {
        Some(kind) => kind,
        None => section.str("type")?.unwrap_or("default"),
    };
    let trained = section.f64("original_max_position_embeddings")?;
    Ok(match kind {
        // Up to `max_position_embeddings`, which the context never exceeds, "dynamic" changes nothing.
        "default" | "dynamic" => RopeScaling::None,
        "linear" => RopeScaling::Linear { factor: section.require_f64("factor")? },
        "llama3" => RopeScaling::Llama3 {
            factor: section.require_f64("factor")?,
            low_freq_factor: section.require_f64("low_freq_factor")?,
            high_freq_factor: section.require_f64("high_freq_factor")?,
            original_context: section.require_f64("original_max_position_embeddings")?,
        },
        "yarn" => {
            let original_context = trained.unwrap_or(context_length as f64);
            let factor = section.f64("factor")?.unwrap_or(context_length as f64 / original_context);
            let mscales = section.f64("mscale")?.zip(section.f64("mscale_all_dim")?);
            let recommended = match mscales {
                Some((mscale, all_dim)) if mscale != 0.0 && all_dim != 0.0 => {
                    yarn_attention_factor(factor, mscale) / yarn_attention_factor(factor, all_dim)
                }
                _ => yarn_attention_factor(factor, 1.0),
            };
            RopeScaling::Yarn {
                factor,
                original_context,
                beta_fast: section.f64("beta_fast")?.unwrap_or(32.0),
                beta_slow: section.f64("beta_slow")?.unwrap_or(1.0),
                attention_factor: section.f64("attention_factor")?.unwrap_or(recommended),
                truncate: section.bool("truncate")?.unwrap_or(true),
            }
        }
        other => {
            let other: String = other.chars().take(80).collect();
            bail!(
                UnsupportedModel,
                "rope scaling \"{other}\" is not supported; default, linear, dynamic, llama3 and yarn are"
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;
    use serde_json::{Value, json};

    use super::*;

    fn with(extra: Value) -> Result<LlamaConfig> {
        let mut keys = json!({
            "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "vocab_size": 100, "max_position_embeddings": 512
        });
        let (Value::Object(keys), Value::Object(extra)) = (&mut keys, extra) else { panic!("objects") };
        keys.extend(extra);
        LlamaConfig::from_hf(&HfConfig::new("m/config.json", keys.clone()))
    }

    #[test]
    fn defaults_are_those_of_the_architecture() {
        let c = with(json!({})).unwrap();
        assert_eq!((c.head_dim, c.num_kv_heads, c.context_length), (16, 4, 512));
        assert_eq!((c.rms_norm_eps, c.rope.theta, c.rope.scaling), (1e-6, 1e4, RopeScaling::None));
        assert_eq!((c.tied_head, c.sliding_window, c.mlp_bias), (Some(false), None, Biases::Absent));
    }

    #[test]
    fn rope_is_read_from_either_place() {
        let old = json!({ "rope_theta": 5e5, "rope_scaling": { "type": "linear", "factor": 4 } });
        let new = json!({ "rope_parameters": { "rope_type": "linear", "factor": 4.0, "rope_theta": 5e5 } });
        let (old, new) = (with(old).unwrap(), with(new).unwrap());
        assert_eq!(old, new);
        assert_eq!((old.rope.theta, old.rope.scaling), (5e5, RopeScaling::Linear { factor: 4.0 }));
    }

    #[test]
    fn yarn_takes_its_factor_from_the_lengths() {
        let c =
            with(json!({ "rope_scaling": { "rope_type": "yarn", "original_max_position_embeddings": 128 } }));
        let RopeScaling::Yarn { factor, attention_factor, .. } = c.unwrap().rope.scaling else {
            panic!("yarn")
        };
        assert_eq!(factor, 4.0);
        assert_eq!(attention_factor, yarn_attention_factor(4.0, 1.0));
    }

    #[test]
    fn a_window_is_mistral_s() {
        let window = |v| with(v).unwrap().sliding_window;
        assert_eq!(window(json!({ "sliding_window": 9 })), None);
        assert_eq!(window(json!({ "model_type": "mistral", "sliding_window": 9 })), Some(9));
        assert_eq!(window(json!({ "model_type": "mistral", "sliding_window": null })), None);
        assert_eq!(window(json!({ "model_type": "mistral" })), Some(4096));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file() {
        use ErrorKind::{InvalidFile, UnsupportedModel};
        for (keys, kind, part) in [
            (json!({ "hidden_size": null }), InvalidFile, "hidden_size"),
            (json!({ "vocab_size": 1e12 }), InvalidFile, "vocab_size"),
            (json!({ "num_attention_heads": 7 }), InvalidFile, "num_attention_heads"),
            (json!({ "num_key_value_heads": 3 }), InvalidFile, "key-value heads"),
            (json!({ "head_dim": 15 }), InvalidFile, "even"),
            (json!({ "num_hidden_layers": 0 }), InvalidFile, "num_hidden_layers"),
            (json!({ "rms_norm_eps": -1 }), InvalidFile, "epsilon"),
            (json!({ "hidden_act": "gelu" }), UnsupportedModel, "gelu"),
            (json!({ "quantization_config": { "quant_method": "awq" } }), UnsupportedModel, "awq"),
            (json!({ "rope_scaling": { "type": "longrope" } }), UnsupportedModel, "longrope"),
            (json!({ "rope_scaling": { "type": "llama3" } }), InvalidFile, "factor"),
            (json!({ "rope_scaling": 3 }), InvalidFile, "rope_scaling"),
        ] {
            let e = with(keys).unwrap_err();
            assert_eq!(e.kind(), kind, "{e}");
            assert!(e.message().starts_with("m/config.json") && e.message().contains(part), "{e}");
        }
    }
}
