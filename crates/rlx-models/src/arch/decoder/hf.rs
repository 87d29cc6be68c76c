//! The configuration of a decoder from its `config.json`: what is read alike for every architecture.

use rlx_ir::bail;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::position::rope::RopeStyle;

use super::architecture::{DecoderArchitecture, HfBias};
use super::config::{AttentionConfig, Biases, DecoderConfig, Direction, FeedForward, LayerConfig};
use crate::arch::rope::{self, RopeConfig, RopeScaling};
use crate::files::{HfConfig, limits};
use crate::{Error, Result};

/// Reads the `config.json` of a model of `architecture`.
///
/// # Errors
/// `InvalidFile` naming file and key; `UnsupportedModel` for variants that would compute something else, by name.
pub fn config_from_hf(architecture: &DecoderArchitecture, config: &HfConfig) -> Result<DecoderConfig> {
    let read = || {
        config.refuse_quantised()?;
        let part = match architecture.hf.text_section {
            Some(section) => config.section(section)?,
            None => None,
        };
        let config = part.as_ref().unwrap_or(config);
        let mut base = base(architecture, config)?;
        (architecture.hf.finish)(config, &mut base)?;
        base.check()
    };
    read().map_err(|e| config.locate(e))
}

fn base(architecture: &DecoderArchitecture, config: &HfConfig) -> Result<DecoderConfig> {
    let (facts, defaults) = (&architecture.hf, &architecture.hf.defaults);
    refuse_activation(architecture, config)?;
    let hidden_size = config.require_size("hidden_size", limits::MAX_WIDTH)?;
    let num_heads = required(config, "num_attention_heads", limits::MAX_HEADS, defaults.num_heads)?;
    let head_dim = match config.size("head_dim", limits::MAX_WIDTH)? {
        Some(head_dim) => head_dim,
        None => match defaults.head_dim {
            Some(head_dim) => head_dim,
            None => limits::quotient("hidden_size", hidden_size, "num_attention_heads", num_heads)?,
        },
    };
    // `null` stands for as many as heads, whatever the default.
    let num_kv_heads = match config.size("num_key_value_heads", limits::MAX_HEADS)? {
        Some(heads) => heads,
        None if config.has_key("num_key_value_heads") => num_heads,
        None => defaults.num_kv_heads.unwrap_or(num_heads),
    };
    let context_length =
        config.size("max_position_embeddings", limits::MAX_POSITIONS)?.unwrap_or(defaults.context_length);
    let layer = LayerConfig {
        window: None,
        rope: RopeConfig {
            style: RopeStyle::Half,
            theta: defaults.rope_theta,
            rotary_dim: head_dim,
            scaling: RopeScaling::None,
        },
        feed_forward: FeedForward::Gated {
            intermediate_size: config.require_size("intermediate_size", limits::MAX_WIDTH)?,
            bias: biases(config, facts.mlp_bias)?,
        },
    };
    let num_layers = config.require_size("num_hidden_layers", limits::MAX_LAYERS)?;
    Ok(DecoderConfig {
        architecture: architecture.name,
        vocab_size: required(config, "vocab_size", limits::MAX_VOCAB, defaults.vocab_size)?,
        hidden_size,
        num_heads,
        num_kv_heads,
        head_dim,
        context_length,
        norm: RmsNorm {
            eps: config.f64("rms_norm_eps")?.unwrap_or(1e-6),
            unit_offset: facts.unit_offset_norms,
        },
        embedding_scale: architecture.embedding_scale(hidden_size),
        attention: AttentionConfig {
            scale: 1.0 / libm::sqrt(head_dim as f64),
            softcap: None,
            qkv_bias: biases(config, facts.qkv_bias)?,
            output_bias: biases(config, facts.output_bias)?,
            qk_norm: architecture.qk_norm,
            // Embedding models on a language model's network say false.
            direction: match config.bool("is_causal")? {
                Some(false) => Direction::Bidirectional,
                _ => Direction::Causal,
            },
        },
        activation: architecture.activation,
        post_norms: architecture.post_norms,
        layers: vec![layer; num_layers],
        final_softcap: None,
        tied_head: Some(config.bool("tie_word_embeddings")?.unwrap_or(defaults.tied_head)),
    })
}

/// Gives all layers the rope of the config.
///
/// # Errors
/// As [`config_from_hf`].
pub(in crate::arch) fn rope_of_all_layers(config: &HfConfig, base: &mut DecoderConfig) -> Result<()> {
    let default_theta = base.layers.first().map_or(10_000.0, |layer| layer.rope.theta);
    let context =
        rope::hf::Context { head_dim: base.head_dim, context_length: base.context_length, default_theta };
    let rope = rope::hf::read(config, context)?;
    base.layers.iter_mut().for_each(|layer| layer.rope = rope);
    Ok(())
}

/// Whether each layer slides, by `layer_types`; `None` where the key is absent.
///
/// # Errors
/// `InvalidFile` where it is no list of a word for each of the `num_layers` layers; `UnsupportedModel` for other words.
pub(in crate::arch) fn sliding_layers(config: &HfConfig, num_layers: usize) -> Result<Option<Vec<bool>>> {
    let Some(value) = config.get("layer_types") else { return Ok(None) };
    let words = value.as_array().filter(|words| words.len() == num_layers);
    let Some(words) = words else {
        bail!(InvalidFile, "layer_types is no list of {num_layers} words, one for each layer");
    };
    let sliding = words.iter().map(|word| match word.as_str() {
        Some("sliding_attention") => Ok(true),
        Some("full_attention") => Ok(false),
        _ => {
            let word: String = word.to_string().chars().take(80).collect();
            bail!(
                UnsupportedModel,
                "the layer type {word} is not supported; full_attention and sliding_attention are"
            )
        }
    });
    sliding.collect::<Result<Vec<bool>>>().map(Some)
}

fn required(config: &HfConfig, key: &str, max: usize, default: Option<usize>) -> Result<usize> {
    match default {
        None => config.require_size(key, max),
        Some(default) => Ok(config.size(key, max)?.unwrap_or(default)),
    }
}

fn biases(config: &HfConfig, bias: HfBias) -> Result<Biases> {
    let there = match bias {
        HfBias::Never => false,
        HfBias::Always => true,
        HfBias::Key(key) => config.bool(key)?.unwrap_or(false),
    };
    Ok(if there { Biases::Required } else { Biases::Absent })
}

/// What would change the result, and is not built.
fn refuse_activation(architecture: &DecoderArchitecture, config: &HfConfig) -> Result<()> {
    let facts = &architecture.hf;
    if let Some(act) = config.str(facts.activation_key)?
        && !facts.activation_words.contains(&act)
    {
        let act: String = act.chars().take(80).collect();
        bail!(
            UnsupportedModel,
            "{} \"{act}\" is not supported for {}; {} is",
            facts.activation_key,
            architecture.name,
            facts.activation_words.join(", ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;
    use serde_json::{Value, json};

    use super::*;
    use crate::arch::{llama, mistral, qwen2, qwen3};

    fn with(architecture: &DecoderArchitecture, extra: Value) -> Result<DecoderConfig> {
        let mut keys = json!({
            "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
            "num_key_value_heads": null, "vocab_size": 100, "max_position_embeddings": 512
        });
        let (Value::Object(keys), Value::Object(extra)) = (&mut keys, extra) else { panic!("objects") };
        keys.extend(extra);
        config_from_hf(architecture, &HfConfig::new("m/config.json", keys.clone()))
    }

    fn windows(architecture: &DecoderArchitecture, extra: Value) -> Vec<Option<usize>> {
        with(architecture, extra).unwrap().layers.iter().map(|layer| layer.window).collect()
    }

    #[test]
    fn a_network_that_is_not_causal_says_so() {
        let direction = |extra| with(&qwen2::ARCHITECTURE, extra).unwrap().attention.direction;
        assert_eq!(direction(json!({})), Direction::Causal);
        assert_eq!(direction(json!({ "is_causal": false })), Direction::Bidirectional);
    }

    #[test]
    fn defaults_are_those_of_the_architecture() {
        let c = with(&llama::ARCHITECTURE, json!({})).unwrap();
        assert_eq!((c.head_dim, c.num_kv_heads, c.context_length, c.layers.len()), (16, 4, 512, 4));
        assert_eq!((c.norm.eps, c.norm.unit_offset, c.embedding_scale), (1e-6, false, 1.0));
        assert_eq!((c.layers[0].rope.theta, c.layers[0].rope.scaling), (1e4, RopeScaling::None));
        assert_eq!((c.tied_head, c.attention.qkv_bias), (Some(false), Biases::Absent));
        let c = with(&qwen3::ARCHITECTURE, json!({ "attention_bias": true })).unwrap();
        assert_eq!((c.head_dim, c.attention.scale, c.attention.qk_norm), (128, 1.0 / 128f64.sqrt(), true));
        assert_eq!((c.attention.qkv_bias, c.attention.output_bias), (Biases::Required, Biases::Required));
        let c = with(&qwen2::ARCHITECTURE, json!({})).unwrap();
        assert_eq!((c.attention.qkv_bias, c.attention.output_bias), (Biases::Required, Biases::Absent));
    }

    #[test]
    fn windows_are_those_of_the_architecture() {
        assert_eq!(windows(&llama::ARCHITECTURE, json!({ "sliding_window": 9 })), [None; 4]);
        assert_eq!(windows(&mistral::ARCHITECTURE, json!({ "sliding_window": 9 })), [Some(9); 4]);
        assert_eq!(windows(&mistral::ARCHITECTURE, json!({ "sliding_window": null })), [None; 4]);
        assert_eq!(windows(&mistral::ARCHITECTURE, json!({})), [Some(4096); 4]);
        let qwen = |extra| windows(&qwen2::ARCHITECTURE, extra);
        assert_eq!(qwen(json!({ "sliding_window": 9 })), [None; 4]);
        let slides = json!({ "sliding_window": 9, "use_sliding_window": true, "max_window_layers": 3 });
        assert_eq!(qwen(slides), [None, None, None, Some(9)]);
        let types = ["full_attention", "sliding_attention", "full_attention", "sliding_attention"];
        let slides = json!({ "sliding_window": 9, "use_sliding_window": true, "layer_types": types });
        assert_eq!(qwen(slides), [None, Some(9), None, Some(9)]);
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
            (json!({ "rope_scaling": 3 }), InvalidFile, "rope_scaling"),
        ] {
            let e = with(&llama::ARCHITECTURE, keys).unwrap_err();
            assert_eq!(e.kind(), kind, "{e}");
            assert!(e.message().starts_with("m/config.json") && e.message().contains(part), "{e}");
        }
    }
}
