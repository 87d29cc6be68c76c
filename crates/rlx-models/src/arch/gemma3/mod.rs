//! Gemma 3 (Gemma Team 2025), text: layers with a window and one rope, and full layers with another; norms before and after
//! each part.
//!
//! Of a model for text and images, the text part is run. In the Hugging Face layout norms are stored with 1 subtracted, in GGUF
//! as they are. The model as published multiplies token vectors by the root of their length as bf16 rounds it; here, as in
//! arithmetic in f32, it is not rounded.

mod gguf;
mod hf;
mod names;

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::position::rope::RopeStyle;

pub use names::NAMES;

use super::decoder::{Biases, DecoderArchitecture, DecoderConfig, GgufFacts, HfBias, HfDefaults, HfFacts};
use super::gguf_keys::GgufKeys;
use crate::Result;

/// Every so many layers, one is full.
const PATTERN: usize = 6;
/// The base of the frequencies in layers with a window.
const SLIDING_THETA: f64 = 10_000.0;

/// Gemma 3.
pub static ARCHITECTURE: DecoderArchitecture = architecture("gemma3", gguf::finish);

/// EmbeddingGemma: Gemma 3 whose tokens see both ways.
pub static EMBEDDING: DecoderArchitecture = architecture("gemma-embedding", gguf::finish_embedding);

const fn architecture(
    name: &'static str,
    finish_gguf: fn(&GgufKeys<'_>, &mut DecoderConfig) -> Result<()>,
) -> DecoderArchitecture {
    DecoderArchitecture {
        name,
        qk_norm: true,
        post_norms: true,
        scaled_embeddings: true,
        activation: Activation::GeluTanh,
        hf: HfFacts {
            text_section: Some("text_config"),
            activation_key: "hidden_activation",
            activation_words: &["gelu_pytorch_tanh"],
            unit_offset_norms: true,
            qkv_bias: HfBias::Key("attention_bias"),
            output_bias: HfBias::Key("attention_bias"),
            mlp_bias: HfBias::Never,
            defaults: HfDefaults {
                vocab_size: Some(262_208),
                num_heads: Some(8),
                num_kv_heads: Some(4),
                head_dim: Some(256),
                context_length: 131_072,
                rope_theta: 1_000_000.0,
                tied_head: true,
            },
            finish: hf::finish,
        },
        gguf: GgufFacts {
            architecture: name,
            rope_style: RopeStyle::Half,
            qkv_bias: Biases::AsStored,
            experts: false,
            finish: finish_gguf,
            write: gguf::write,
        },
    }
}

/// Whether layer `index` has a window where every `pattern`-th layer is full; a pattern of 0 has no full layers, one of 1 no
/// others.
fn slides(index: usize, pattern: usize) -> bool {
    pattern == 0 || !(index + 1).is_multiple_of(pattern)
}
