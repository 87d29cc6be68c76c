//! Qwen2 and Qwen2.5 (Yang et al. 2024): queries, keys and values have biases.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::position::rope::RopeStyle;

use super::decoder::{
    Biases, DecoderArchitecture, DecoderConfig, GgufFacts, HfBias, HfDefaults, HfFacts, rope_of_all_layers,
    sliding_layers,
};
use super::gguf_keys::GgufKeys;
use crate::Result;
use crate::files::{HfConfig, limits};

/// Qwen2.
pub static ARCHITECTURE: DecoderArchitecture = DecoderArchitecture {
    name: "qwen2",
    qk_norm: false,
    post_norms: false,
    scaled_embeddings: false,
    activation: Activation::Silu,
    hf: HfFacts {
        text_section: None,
        activation_key: "hidden_act",
        activation_words: &["silu", "swish"],
        unit_offset_norms: false,
        qkv_bias: HfBias::Always,
        output_bias: HfBias::Never,
        mlp_bias: HfBias::Never,
        defaults: HfDefaults {
            vocab_size: None,
            num_heads: None,
            num_kv_heads: Some(32),
            head_dim: None,
            context_length: 32_768,
            rope_theta: 10_000.0,
            tied_head: false,
        },
        finish: finish_hf,
    },
    gguf: GgufFacts {
        architecture: "qwen2",
        rope_style: RopeStyle::Half,
        qkv_bias: Biases::Required,
        experts: false,
        finish: finish_gguf,
        write: |_, _| {},
    },
};

/// Layers from `max_window_layers` on have a window, where `use_sliding_window` says that there is one.
pub(super) fn finish_hf(config: &HfConfig, base: &mut DecoderConfig) -> Result<()> {
    rope_of_all_layers(config, base)?;
    if config.bool("use_sliding_window")? != Some(true) {
        return Ok(());
    }
    let window = match config.has_key("sliding_window") {
        false => Some(4096),
        true => config.size("sliding_window", limits::MAX_POSITIONS)?,
    };
    let full = config.usize("max_window_layers")?.unwrap_or(28);
    let sliding = sliding_layers(config, base.layers.len())?;
    for (i, layer) in base.layers.iter_mut().enumerate() {
        let slides = sliding.as_ref().map_or(i >= full, |sliding| sliding[i]);
        layer.window = window.filter(|_| slides);
    }
    Ok(())
}

/// GGUF has no windows for the Qwen architectures.
pub(super) fn finish_gguf(_: &GgufKeys<'_>, _: &mut DecoderConfig) -> Result<()> {
    Ok(())
}
