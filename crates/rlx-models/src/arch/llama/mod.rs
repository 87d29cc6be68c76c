//! Llama (Touvron et al. 2023).
//!
//! GGUF files hold the rows of Q and K in another order, so that rope turns neighbouring elements.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::position::rope::RopeStyle;

pub use super::decoder::Biases;
pub use super::decoder::names::NAMES;
use super::decoder::{
    DecoderArchitecture, DecoderConfig, GgufFacts, GgufWriter, HfBias, HfDefaults, HfFacts,
    rope_of_all_layers,
};
use super::gguf_keys::GgufKeys;
use crate::Result;
use crate::files::limits;

/// Llama.
pub static ARCHITECTURE: DecoderArchitecture = DecoderArchitecture {
    name: "llama",
    qk_norm: false,
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
        mlp_bias: HfBias::Key("mlp_bias"),
        defaults: HfDefaults {
            vocab_size: None,
            num_heads: None,
            num_kv_heads: None,
            head_dim: None,
            context_length: 2048,
            rope_theta: 10_000.0,
            tied_head: false,
        },
        finish: rope_of_all_layers,
    },
    gguf: GGUF,
};

/// Llama and Mistral in GGUF files.
pub(super) const GGUF: GgufFacts = GgufFacts {
    architecture: "llama",
    rope_style: RopeStyle::Interleaved,
    qkv_bias: Biases::AsStored,
    experts: false,
    finish: window_of_all_layers,
    write: write_window,
};

/// A Mistral is a Llama with a window there.
fn window_of_all_layers(keys: &GgufKeys<'_>, config: &mut DecoderConfig) -> Result<()> {
    let window = keys.size("attention.sliding_window", limits::MAX_POSITIONS)?;
    config.layers.iter_mut().for_each(|layer| layer.window = window);
    Ok(())
}

fn write_window(keys: &mut GgufWriter<'_>, config: &DecoderConfig) {
    if let Some(window) = config.layers.first().and_then(|layer| layer.window) {
        keys.size("attention.sliding_window", window);
        if window < config.context_length {
            keys.unread("attention.sliding_window");
        }
    }
}
