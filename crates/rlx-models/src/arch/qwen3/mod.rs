//! Qwen3 (Yang et al. 2025): each head of queries and keys is normalised.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::position::rope::RopeStyle;

use super::decoder::{Biases, DecoderArchitecture, GgufFacts, HfBias, HfDefaults, HfFacts};
use super::qwen2;

/// Qwen3.
pub static ARCHITECTURE: DecoderArchitecture = DecoderArchitecture {
    name: "qwen3",
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
            num_kv_heads: Some(32),
            head_dim: Some(128),
            context_length: 32_768,
            rope_theta: 10_000.0,
            tied_head: false,
        },
        finish: qwen2::finish_hf,
    },
    gguf: GgufFacts {
        architecture: "qwen3",
        rope_style: RopeStyle::Half,
        qkv_bias: Biases::AsStored,
        experts: false,
        finish: qwen2::finish_gguf,
        write: |_, _| {},
    },
};
