//! Mistral (Jiang et al. 2023): a Llama whose layers all have a sliding window.

use rlx_ir::ops::activation::Activation;

use super::decoder::{DecoderArchitecture, DecoderConfig, HfBias, HfDefaults, HfFacts, rope_of_all_layers};
use super::llama;
use crate::Result;
use crate::files::{HfConfig, limits};

/// The window of a model whose config does not speak of one.
const DEFAULT_WINDOW: usize = 4096;

/// Mistral. GGUF files call it a Llama.
pub static ARCHITECTURE: DecoderArchitecture = DecoderArchitecture {
    name: "mistral",
    qk_norm: false,
    post_norms: false,
    scaled_embeddings: false,
    activation: Activation::Silu,
    hf: HfFacts {
        text_section: None,
        activation_key: "hidden_act",
        activation_words: &["silu", "swish"],
        unit_offset_norms: false,
        qkv_bias: HfBias::Never,
        output_bias: HfBias::Never,
        mlp_bias: HfBias::Never,
        defaults: HfDefaults {
            vocab_size: None,
            num_heads: None,
            num_kv_heads: Some(8),
            head_dim: None,
            context_length: 131_072,
            rope_theta: 10_000.0,
            tied_head: false,
        },
        finish,
    },
    gguf: llama::GGUF,
};

fn finish(config: &HfConfig, base: &mut DecoderConfig) -> Result<()> {
    rope_of_all_layers(config, base)?;
    // An absent key stands for the first model's window, `null` for none.
    let window = match config.has_key("sliding_window") {
        false => Some(DEFAULT_WINDOW),
        true => config.size("sliding_window", limits::MAX_POSITIONS)?,
    };
    base.layers.iter_mut().for_each(|layer| layer.window = window);
    Ok(())
}
