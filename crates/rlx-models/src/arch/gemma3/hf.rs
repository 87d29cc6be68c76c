//! What only Gemma 3 has in its `config.json`.

use rlx_ir::bail;

use super::{PATTERN, SLIDING_THETA, slides};
use crate::arch::decoder::{DecoderConfig, Direction, sliding_layers};
use crate::arch::rope::{self, RopeConfig};
use crate::files::{HfConfig, limits};
use crate::{Error, Result};

pub(super) fn finish(config: &HfConfig, base: &mut DecoderConfig) -> Result<()> {
    let [full, sliding] = ropes(config, base)?;
    let window = match config.has_key("sliding_window") {
        false => Some(4096),
        true => config.size("sliding_window", limits::MAX_POSITIONS)?,
    };
    let pattern = match config.usize("sliding_window_pattern")? {
        Some(pattern) => pattern,
        None => config.usize("_sliding_window_pattern")?.unwrap_or(PATTERN),
    };
    let types = sliding_layers(config, base.layers.len())?;
    for (i, layer) in base.layers.iter_mut().enumerate() {
        let is_sliding = types.as_ref().map_or_else(|| slides(i, pattern), |types| types[i]);
        (layer.rope, layer.window) = if is_sliding { (sliding, window) } else { (full, None) };
    }
    let attention = &mut base.attention;
    let query_scalar = config.f64("query_pre_attn_scalar")?.unwrap_or(256.0);
    attention.scale = 1.0 / libm::sqrt(limits::positive("query_pre_attn_scalar", query_scalar)?);
    attention.softcap = config.f64("attn_logit_softcapping")?;
    if config.bool("use_bidirectional_attention")? == Some(true) {
        attention.direction = Direction::Bidirectional;
    }
    base.final_softcap = config.f64("final_logit_softcapping")?;
    Ok(())
}

/// The ropes of full layers and of those with a window: two sections, or before them keys beside one section for the full ones.
fn ropes(config: &HfConfig, base: &DecoderConfig) -> Result<[RopeConfig; 2]> {
    let full_theta = base.layers.first().map_or(1e6, |layer| layer.rope.theta);
    let read = |section: Option<&HfConfig>, key: &str, default_theta: f64| {
        let context =
            rope::hf::Context { head_dim: base.head_dim, context_length: base.context_length, default_theta };
        rope::hf::from_section(config, section, config.f64(key)?, context)
    };
    let (full, sliding) = match config.section("rope_parameters")? {
        Some(both) => {
            let (full, sliding) = (both.section("full_attention")?, both.section("sliding_attention")?);
            if full.is_none() && sliding.is_none() {
                bail!(
                    InvalidFile,
                    "rope_parameters has neither \"full_attention\" nor \"sliding_attention\""
                );
            }
            (full, sliding)
        }
        None => (config.section("rope_scaling")?, None),
    };
    Ok([
        read(full.as_ref(), "rope_theta", full_theta)?,
        read(sliding.as_ref(), "rope_local_base_freq", SLIDING_THETA)?,
    ])
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;
    use serde_json::{Value, json};

    use super::super::ARCHITECTURE;
    use super::*;
    use crate::arch::decoder::config_from_hf;
    use crate::arch::rope::RopeScaling;

    fn with(keys: Value) -> Result<DecoderConfig> {
        let mut base = json!({
            "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 12,
            "sliding_window": 1024
        });
        let (Value::Object(base), Value::Object(keys)) = (&mut base, keys) else { panic!("objects") };
        base.extend(keys);
        config_from_hf(&ARCHITECTURE, &HfConfig::new("m/config.json", base.clone()))
    }

    #[test]
    fn absent_keys_are_those_of_the_published_models() {
        let c = with(json!({ "rope_scaling": { "factor": 8.0, "rope_type": "linear" } })).unwrap();
        assert_eq!((c.vocab_size, c.num_heads, c.num_kv_heads, c.head_dim), (262_208, 8, 4, 256));
        assert_eq!((c.attention.scale, c.tied_head, c.norm.unit_offset), (1.0 / 16.0, Some(true), true));
        assert_eq!(c.embedding_scale, 2560f64.sqrt());
        for (i, layer) in c.layers.iter().enumerate() {
            let full = i == 5 || i == 11;
            assert_eq!(layer.window, (!full).then_some(1024), "{i}");
            let scaling = if full { RopeScaling::Linear { factor: 8.0 } } else { RopeScaling::None };
            assert_eq!(
                (layer.rope.theta, layer.rope.scaling),
                (if full { 1e6 } else { 1e4 }, scaling),
                "{i}"
            );
        }
    }

    #[test]
    fn new_and_old_keys_say_the_same() {
        let old = with(json!({
            "rope_scaling": { "factor": 8.0, "rope_type": "linear" }, "rope_theta": 2e6, "rope_local_base_freq": 3e4
        }));
        let new = with(json!({ "rope_parameters": {
            "full_attention": { "factor": 8.0, "rope_type": "linear", "rope_theta": 2e6 },
            "sliding_attention": { "rope_type": "default", "rope_theta": 3e4 }
        } }));
        let types: Vec<&str> =
            (0..12).map(|i| if i % 6 == 5 { "full_attention" } else { "sliding_attention" }).collect();
        let typed = with(json!({
            "rope_scaling": { "factor": 8.0, "rope_type": "linear" }, "rope_theta": 2e6, "rope_local_base_freq": 3e4,
            "layer_types": types, "sliding_window_pattern": 2
        }));
        let old = old.unwrap();
        assert_eq!(old, new.unwrap());
        assert_eq!(old, typed.unwrap());
    }

    #[test]
    fn caps_scale_and_direction_are_read() {
        let c = with(json!({
            "query_pre_attn_scalar": 168, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
            "use_bidirectional_attention": true
        }))
        .unwrap();
        assert_eq!((c.attention.softcap, c.final_softcap), (Some(50.0), Some(30.0)));
        assert_eq!(
            (c.attention.scale, c.attention.direction),
            (1.0 / 168f64.sqrt(), Direction::Bidirectional)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (keys, kind, part) in [
            (json!({ "layer_types": ["full_attention"] }), ErrorKind::InvalidFile, "layer_types"),
            (json!({ "layer_types": vec!["chunked_attention"; 12] }), ErrorKind::UnsupportedModel, "chunked"),
            (json!({ "query_pre_attn_scalar": 0 }), ErrorKind::InvalidFile, "query_pre_attn_scalar"),
            (
                json!({ "rope_parameters": { "rope_type": "default" } }),
                ErrorKind::InvalidFile,
                "full_attention",
            ),
            (json!({ "hidden_activation": "relu" }), ErrorKind::UnsupportedModel, "gelu_pytorch_tanh"),
            (json!({ "final_logit_softcapping": -1 }), ErrorKind::InvalidFile, "cap"),
        ] {
            let e = with(keys).unwrap_err();
            assert!(e.kind() == kind && e.message().contains(part), "{e}");
            assert!(e.message().starts_with("m/config.json"), "{e}");
        }
    }
}
