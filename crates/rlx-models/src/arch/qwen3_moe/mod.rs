//! Qwen3 with a mixture of experts in some or all layers (Yang et al. 2025).

use rlx_ir::bail;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::position::rope::RopeStyle;

use super::decoder::{
    Biases, DecoderArchitecture, DecoderConfig, Experts, FeedForward, GgufFacts, GgufWriter, HfBias,
    HfDefaults, HfFacts, rope_of_all_layers,
};
use super::gguf_keys::GgufKeys;
use crate::files::{HfConfig, limits};
use crate::{Error, Result};

/// Qwen3 with experts.
pub static ARCHITECTURE: DecoderArchitecture = DecoderArchitecture {
    name: "qwen3moe",
    qk_norm: true,
    post_norms: false,
    scaled_embeddings: false,
    activation: Activation::Silu,
    hf: HfFacts {
        text_section: None,
        activation_key: "hidden_act",
        activation_words: &["silu", "swish"],
        unit_offset_norms: false,
        qkv_bias: HfBias::Key("attention_bias"),
        output_bias: HfBias::Key("attention_bias"),
        mlp_bias: HfBias::Never,
        defaults: HfDefaults {
            vocab_size: None,
            num_heads: None,
            num_kv_heads: Some(4),
            head_dim: None,
            context_length: 32_768,
            rope_theta: 10_000.0,
            tied_head: false,
        },
        finish: finish_hf,
    },
    gguf: GgufFacts {
        architecture: "qwen3moe",
        rope_style: RopeStyle::Half,
        qkv_bias: Biases::AsStored,
        experts: true,
        finish: finish_gguf,
        write,
    },
};

fn finish_hf(config: &HfConfig, base: &mut DecoderConfig) -> Result<()> {
    rope_of_all_layers(config, base)?;
    // Either all layers have the window or none.
    if config.bool("use_sliding_window")? == Some(true) {
        let window = match config.has_key("sliding_window") {
            false => Some(4096),
            true => config.size("sliding_window", limits::MAX_POSITIONS)?,
        };
        base.layers.iter_mut().for_each(|layer| layer.window = window);
    }
    let count = match config.size("num_experts", limits::MAX_EXPERTS)? {
        Some(count) => count,
        None => config.size("num_local_experts", limits::MAX_EXPERTS)?.unwrap_or(128),
    };
    let experts = Experts {
        count,
        chosen: config.size("num_experts_per_tok", limits::MAX_EXPERTS)?.unwrap_or(8),
        intermediate_size: config.size("moe_intermediate_size", limits::MAX_WIDTH)?.unwrap_or(768),
        normalized: config.bool("norm_topk_prob")?.unwrap_or(false),
    };
    let step = config.size("decoder_sparse_step", limits::MAX_LAYERS)?.unwrap_or(1);
    let dense = dense_layers(config)?;
    for (i, layer) in base.layers.iter_mut().enumerate() {
        if (i + 1).is_multiple_of(step) && !dense.contains(&i) {
            layer.feed_forward = FeedForward::Experts(experts);
        }
    }
    Ok(())
}

/// The layers without experts, `mlp_only_layers`.
fn dense_layers(config: &HfConfig) -> Result<Vec<usize>> {
    let Some(value) = config.get("mlp_only_layers") else { return Ok(Vec::new()) };
    let number = |v: &serde_json::Value| v.as_u64().and_then(|n| usize::try_from(n).ok());
    match value.as_array().and_then(|list| list.iter().map(number).collect()) {
        Some(list) => Ok(list),
        None => bail!(InvalidFile, "mlp_only_layers is no list of layers"),
    }
}

fn finish_gguf(keys: &GgufKeys<'_>, config: &mut DecoderConfig) -> Result<()> {
    let experts = Experts {
        count: keys.require_size("expert_count", limits::MAX_EXPERTS)?,
        chosen: keys.require_size("expert_used_count", limits::MAX_EXPERTS)?,
        intermediate_size: keys.require_size("expert_feed_forward_length", limits::MAX_WIDTH)?,
        normalized: keys.metadata().bool(&keys.key("expert_weights_norm"))?.unwrap_or(true),
    };
    config.layers.iter_mut().for_each(|layer| layer.feed_forward = FeedForward::Experts(experts));
    Ok(())
}

fn write(keys: &mut GgufWriter<'_>, config: &DecoderConfig) {
    let Some(FeedForward::Experts(experts)) = config.layers.first().map(|layer| layer.feed_forward) else {
        return;
    };
    keys.size("expert_count", experts.count);
    keys.size("expert_used_count", experts.chosen);
    keys.size("expert_feed_forward_length", experts.intermediate_size);
    // Readers expect the key of the dense parts, which there are none of.
    keys.size("feed_forward_length", experts.intermediate_size);
    if !experts.normalized {
        keys.flag("expert_weights_norm", false);
        keys.unread("expert_weights_norm");
    }
}
