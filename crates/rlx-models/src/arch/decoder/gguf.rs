//! The configuration of a decoder from GGUF metadata: what is read alike for every architecture.

use rlx_gguf::{Gguf, Metadata};
use rlx_ir::bail;
use rlx_ir::ops::norm::rms_norm::RmsNorm;

use super::architecture::DecoderArchitecture;
use super::config::{AttentionConfig, Biases, DecoderConfig, Direction, FeedForward, LayerConfig};
use crate::arch::gguf_keys::GgufKeys;
use crate::arch::rope;
use crate::files::limits;
use crate::{Error, Result};

/// Reads the metadata of a GGUF file of `architecture`.
///
/// # Errors
/// `InvalidFile` naming the key; `UnsupportedModel` for variants that would compute something else, by name.
pub fn read(architecture: &DecoderArchitecture, gguf: &Gguf) -> Result<DecoderConfig> {
    // The vocabulary is as large as the table says: the key for it is often absent.
    let rows = gguf.tensor("token_embd.weight")?.shape().first().copied().unwrap_or(0);
    let vocab_size = limits::size("rows of token_embd.weight", rows, limits::MAX_VOCAB)?;
    from_metadata(architecture, gguf.metadata(), vocab_size)
}

/// Reads metadata of a model with so many tokens.
///
/// # Errors
/// As [`read`].
pub(super) fn from_metadata(
    architecture: &DecoderArchitecture,
    metadata: &Metadata,
    vocab_size: usize,
) -> Result<DecoderConfig> {
    let keys = GgufKeys::new(metadata)?;
    let mut config = base(architecture, &keys, vocab_size)?;
    (architecture.gguf.finish)(&keys, &mut config)?;
    config.check()
}

fn base(architecture: &DecoderArchitecture, keys: &GgufKeys<'_>, vocab_size: usize) -> Result<DecoderConfig> {
    let facts = &architecture.gguf;
    if keys.architecture() != facts.architecture {
        bail!(
            UnsupportedModel,
            "GGUF has no architecture \"{}\": such models are \"{}\" there",
            keys.architecture(),
            facts.architecture
        );
    }
    if !facts.experts {
        refuse_experts(keys)?;
    }
    let hidden_size = keys.require_size("embedding_length", limits::MAX_WIDTH)?;
    let num_heads = keys.require_size("attention.head_count", limits::MAX_HEADS)?;
    let head_dim = match keys.size("attention.key_length", limits::MAX_WIDTH)? {
        Some(head_dim) => head_dim,
        None => limits::quotient("embedding_length", hidden_size, "attention.head_count", num_heads)?,
    };
    if let Some(value_dim) = keys.size("attention.value_length", limits::MAX_WIDTH)?
        && value_dim != head_dim
    {
        bail!(UnsupportedModel, "values of {value_dim} elements beside keys of {head_dim} are not supported");
    }
    let context_length = keys.size("context_length", limits::MAX_POSITIONS)?.unwrap_or(2048);
    let eps = keys.require_float("attention.layer_norm_rms_epsilon")?;
    let causal = keys.metadata().bool(&keys.key("attention.causal"))?.unwrap_or(true);
    let layer = LayerConfig {
        window: None,
        rope: rope::gguf::read(keys, facts.rope_style, head_dim, context_length)?,
        feed_forward: FeedForward::Gated {
            intermediate_size: keys.require_size("feed_forward_length", limits::MAX_WIDTH)?,
            bias: Biases::AsStored,
        },
    };
    let num_layers = keys.require_size("block_count", limits::MAX_LAYERS)?;
    Ok(DecoderConfig {
        architecture: architecture.name,
        vocab_size,
        hidden_size,
        num_heads,
        num_kv_heads: keys.size("attention.head_count_kv", limits::MAX_HEADS)?.unwrap_or(num_heads),
        head_dim,
        context_length,
        norm: RmsNorm { eps, unit_offset: false },
        embedding_scale: architecture.embedding_scale(hidden_size),
        attention: AttentionConfig {
            scale: 1.0 / libm::sqrt(head_dim as f64),
            softcap: None,
            qkv_bias: facts.qkv_bias,
            output_bias: Biases::AsStored,
            qk_norm: architecture.qk_norm,
            direction: if causal { Direction::Causal } else { Direction::Bidirectional },
        },
        activation: architecture.activation,
        post_norms: architecture.post_norms,
        layers: vec![layer; num_layers],
        final_softcap: None,
        tied_head: None,
    })
}

fn refuse_experts(keys: &GgufKeys<'_>) -> Result<()> {
    let experts = keys.metadata().usize(&keys.key("expert_count"))?.unwrap_or(0);
    if experts > 0 {
        bail!(
            UnsupportedModel,
            "a mixture of {experts} experts is not supported for {}",
            keys.architecture()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rlx_gguf::{MetadataBuilder, Writer};
    use rlx_ir::ops::position::rope::RopeStyle;
    use rlx_ir::{DType, ErrorKind};

    use super::*;
    use crate::arch::rope::{RopeScaling, yarn_attention_factor};
    use crate::arch::{gemma3, llama, mistral, qwen2};

    fn with(
        architecture: &DecoderArchitecture,
        name: &str,
        extra: impl FnOnce(&mut MetadataBuilder),
    ) -> Result<DecoderConfig> {
        let path = std::env::temp_dir().join(format!("rlx-decoder-{}-{name}.gguf", std::process::id()));
        let mut m = MetadataBuilder::new();
        let arch = architecture.gguf.architecture;
        m.set("general.architecture", arch);
        for (key, value) in [
            ("block_count", 7u32),
            ("embedding_length", 64),
            ("feed_forward_length", 128),
            ("attention.head_count", 4),
            ("context_length", 256),
        ] {
            m.set(&format!("{arch}.{key}"), value);
        }
        m.set(&format!("{arch}.attention.layer_norm_rms_epsilon"), 1e-5f32);
        extra(&mut m);
        let mut writer = Writer::new(&path, m).unwrap();
        writer.declare("token_embd.weight", DType::F32, &[3, 64]).unwrap();
        let mut data = writer.start().unwrap();
        data.tensor("token_embd.weight", |sink| sink.write(&[0; 3 * 64 * 4])).unwrap();
        data.finish().unwrap();
        let config = read(architecture, &Gguf::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        config
    }

    #[test]
    fn keys_and_their_defaults() {
        let c = with(&llama::ARCHITECTURE, "defaults", |_| ()).unwrap();
        assert_eq!((c.vocab_size, c.head_dim, c.num_kv_heads, c.context_length), (3, 16, 4, 256));
        let rope = c.layers[0].rope;
        assert_eq!(
            (rope.style, rope.rotary_dim, rope.scaling),
            (RopeStyle::Interleaved, 16, RopeScaling::None)
        );
        assert_eq!(c.layers.iter().filter(|l| l.window.is_none()).count(), 7);
        let c = with(&llama::ARCHITECTURE, "keys", |m| {
            m.set("llama.attention.head_count_kv", 2u32);
            m.set("llama.attention.key_length", 32u32);
            m.set("llama.attention.sliding_window", 9u32);
            m.set("llama.rope.dimension_count", 16u32);
            m.set("llama.rope.freq_base", 5e5f32);
            m.set("llama.rope.scaling.factor", 4f32);
        })
        .unwrap();
        let layer = c.layers[6];
        assert_eq!((c.num_kv_heads, c.head_dim, layer.rope.rotary_dim), (2, 32, 16));
        assert_eq!((layer.rope.theta, layer.rope.scaling), (5e5, RopeScaling::Linear { factor: 4.0 }));
        assert_eq!(layer.window, Some(9));
        let c = with(&qwen2::ARCHITECTURE, "qwen2", |_| ()).unwrap();
        assert_eq!((c.layers[0].rope.style, c.attention.qkv_bias), (RopeStyle::Half, Biases::Required));
    }

    #[test]
    fn yarn_multiplies_its_own_factor() {
        let yarn = |name: &str, key: &'static str, value: f32| {
            let c = with(&qwen2::ARCHITECTURE, name, |m| {
                m.set("qwen2.rope.scaling.type", "yarn");
                m.set("qwen2.rope.scaling.factor", 2f32);
                m.set("qwen2.rope.scaling.original_context_length", 128u32);
                m.set(key, value);
            });
            match c.unwrap().layers[0].rope.scaling {
                RopeScaling::Yarn { original_context, attention_factor, .. } => {
                    assert_eq!(original_context, 128.0);
                    attention_factor
                }
                other => panic!("{other:?}"),
            }
        };
        let recommended = yarn_attention_factor(2.0, 1.0);
        assert_eq!(yarn("yarn", "qwen2.rope.scaling.yarn_ext_factor", 1.0), recommended);
        assert_eq!(yarn("yarn-top", "qwen2.rope.scaling.attn_factor", 0.5), recommended * 0.5);
        assert_eq!(yarn("yarn-whole", "qwen2.rope.scaling.yarn_attn_factor", 0.5), 0.5);
    }

    #[test]
    fn layers_of_gemma_3_alternate() {
        let gemma = &gemma3::ARCHITECTURE;
        let window = |m: &mut MetadataBuilder| {
            m.set("gemma3.attention.sliding_window", 9u32);
            m.set("gemma3.rope.freq_base", 1e6f32);
            m.set("gemma3.rope.scaling.factor", 8f32);
        };
        let slides = |c: &DecoderConfig| c.layers.iter().map(|l| l.window.is_some()).collect::<Vec<_>>();
        let c = with(gemma, "gemma", window).unwrap();
        assert_eq!(slides(&c), [true, true, true, true, true, false, true]);
        let [sliding, full] = [c.layers[0].rope, c.layers[5].rope];
        assert_eq!((sliding.theta, sliding.scaling), (1e4, RopeScaling::None));
        assert_eq!((full.theta, full.scaling), (1e6, RopeScaling::Linear { factor: 8.0 }));
        assert_eq!((c.embedding_scale, c.norm.unit_offset), (8.0, false));
        let list = [true, false, true, false, true, true, true];
        let c = with(gemma, "gemma-list", |m| {
            window(m);
            m.set_numbers("gemma3.attention.sliding_window_pattern", &list.map(u32::from));
            m.set("gemma3.rope.freq_base_swa", 3e4f32);
            m.set("gemma3.final_logit_softcapping", 30f32);
        })
        .unwrap();
        assert_eq!(
            (slides(&c), c.layers[0].rope.theta, c.final_softcap),
            (list.to_vec(), 3e4f32.into(), Some(30.0))
        );
        let e = with(gemma, "gemma-short", |m| {
            m.set_numbers("gemma3.attention.sliding_window_pattern", &[1u32]);
        });
        assert!(e.unwrap_err().message().contains("1 items for 7 layers"));
        assert_eq!(slides(&with(gemma, "gemma-full", |_| ()).unwrap()), [false; 7]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let refusal = |name: &str, key: &str, value: u32| {
            with(&llama::ARCHITECTURE, name, |m| m.set(key, value)).unwrap_err()
        };
        let e = refusal("experts", "llama.expert_count", 8);
        assert_eq!(e.kind(), ErrorKind::UnsupportedModel);
        let e = refusal("heads", "llama.attention.head_count_kv", 3);
        assert!(e.kind() == ErrorKind::InvalidFile && e.message().contains("key-value heads"), "{e}");
        let e = refusal("layers", "llama.block_count", 1_000_000);
        assert!(e.message().contains("llama.block_count"), "{e}");
        let e = with(&llama::ARCHITECTURE, "scaling", |m| m.set("llama.rope.scaling.type", "longrope"));
        let e = e.unwrap_err();
        assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("longrope"), "{e}");
        let e = with(&mistral::ARCHITECTURE, "mistral", |m| m.set("general.architecture", "mistral"));
        assert!(e.unwrap_err().message().contains("\"llama\" there"));
    }
}
