//! The configuration from GGUF metadata.

use rlx_gguf::{Gguf, Metadata};
use rlx_ir::bail;
use rlx_ir::ops::position::rope::RopeStyle;

use super::config::{Biases, LlamaConfig};
use crate::arch::rope::{RopeConfig, RopeScaling, yarn_attention_factor};
use crate::files::limits;
use crate::{Error, Result};

impl LlamaConfig {
    /// Reads the metadata of a GGUF file of the architecture `llama`.
    ///
    /// # Errors
    /// `InvalidFile` naming the key; `UnsupportedModel` for variants that would compute something else.
    pub fn from_gguf(gguf: &Gguf) -> Result<Self> {
        // The vocabulary is as large as the table says: the key for it is often absent.
        let rows = gguf.tensor("token_embd.weight")?.shape().first().copied().unwrap_or(0);
        let vocab_size = limits::size("rows of token_embd.weight", rows, limits::MAX_VOCAB)?;
        Keys::new(gguf.metadata())?.read(vocab_size).and_then(Self::check)
    }
}

/// Metadata keys that start with the architecture's name.
struct Keys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl<'a> Keys<'a> {
    fn new(metadata: &'a Metadata) -> Result<Self> {
        Ok(Self { metadata, architecture: metadata.require_str("general.architecture")? })
    }

    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    fn size(&self, name: &str, max: usize) -> Result<Option<usize>> {
        let key = self.key(name);
        self.metadata.usize(&key)?.map(|n| limits::size(&key, n, max)).transpose()
    }

    fn require_size(&self, name: &str, max: usize) -> Result<usize> {
        let key = self.key(name);
        limits::size(&key, self.metadata.require_usize(&key)?, max)
    }

    fn float(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.metadata.f32(&self.key(name))?.map(f64::from))
    }

    fn read(&self, vocab_size: usize) -> Result<LlamaConfig> {
        self.refuse_variants()?;
        let hidden_size = self.require_size("embedding_length", limits::MAX_WIDTH)?;
        let num_heads = self.require_size("attention.head_count", limits::MAX_HEADS)?;
        let head_dim = match self.size("attention.key_length", limits::MAX_WIDTH)? {
            Some(head_dim) => head_dim,
            None => limits::quotient("embedding_length", hidden_size, "attention.head_count", num_heads)?,
        };
        if let Some(value_dim) = self.size("attention.value_length", limits::MAX_WIDTH)?
            && value_dim != head_dim
        {
            bail!(
                UnsupportedModel,
                "values of {value_dim} elements beside keys of {head_dim} are not supported"
            );
        }
        let context_length = self.size("context_length", limits::MAX_POSITIONS)?.unwrap_or(2048);
        let rotary_dim = self.size("rope.dimension_count", limits::MAX_WIDTH)?.unwrap_or(head_dim);
        Ok(LlamaConfig {
            architecture: self.architecture.to_owned(),
            vocab_size,
            hidden_size,
            intermediate_size: self.require_size("feed_forward_length", limits::MAX_WIDTH)?,
            num_layers: self.require_size("block_count", limits::MAX_LAYERS)?,
            num_heads,
            num_kv_heads: self.size("attention.head_count_kv", limits::MAX_HEADS)?.unwrap_or(num_heads),
            head_dim,
            rms_norm_eps: match self.float("attention.layer_norm_rms_epsilon")? {
                Some(eps) => eps,
                None => bail!(
                    InvalidFile,
                    "metadata key `{}` is missing",
                    self.key("attention.layer_norm_rms_epsilon")
                ),
            },
            rope: RopeConfig {
                // The rows of Q and K are stored in the order of neighbouring pairs.
                style: RopeStyle::Interleaved,
                theta: self.float("rope.freq_base")?.unwrap_or(10_000.0),
                rotary_dim,
                scaling: self.scaling(context_length)?,
            },
            sliding_window: self.size("attention.sliding_window", limits::MAX_POSITIONS)?,
            context_length,
            tied_head: None,
            attention_bias: Biases::AsStored,
            mlp_bias: Biases::AsStored,
        })
    }

    fn refuse_variants(&self) -> Result<()> {
        let experts = self.metadata.usize(&self.key("expert_count"))?.unwrap_or(0);
        if experts > 0 {
            bail!(UnsupportedModel, "a mixture of {experts} experts is not supported");
        }
        Ok(())
    }

    fn scaling(&self, context_length: usize) -> Result<RopeScaling> {
        let factor = match self.float("rope.scaling.factor")? {
            Some(factor) => Some(factor),
            None => self.float("rope.scale_linear")?,
        };
        // 0 stands for none.
        let factor = factor.filter(|f| *f != 0.0);
        let key = self.key("rope.scaling.type");
        Ok(match (self.metadata.str(&key)?.unwrap_or("linear"), factor) {
            ("none", _) | ("linear", None) => RopeScaling::None,
            ("linear", Some(factor)) => RopeScaling::Linear { factor },
            ("yarn", factor) => {
                let factor = factor.unwrap_or(1.0);
                if self.float("rope.scaling.yarn_ext_factor")?.is_some_and(|f| f != 1.0) {
                    bail!(UnsupportedModel, "a yarn_ext_factor other than 1 is not supported");
                }
                let trained = self.size("rope.scaling.original_context_length", limits::MAX_POSITIONS)?;
                let on_top = self.float("rope.scaling.attn_factor")?.unwrap_or(1.0);
                RopeScaling::Yarn {
                    factor,
                    original_context: trained.unwrap_or(context_length) as f64,
                    beta_fast: self.float("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
                    beta_slow: self.float("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
                    attention_factor: yarn_attention_factor(factor, 1.0) * on_top,
                    truncate: true,
                }
            }
            (other, _) => {
                let other: String = other.chars().take(80).collect();
                bail!(UnsupportedModel, "{key} \"{other}\" is not supported; none, linear and yarn are")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use rlx_gguf::{MetadataBuilder, Writer};
    use rlx_ir::{DType, ErrorKind};

    use super::*;

    fn with(name: &str, extra: impl FnOnce(&mut MetadataBuilder)) -> Result<LlamaConfig> {
        let path = std::env::temp_dir().join(format!("rlx-llama-{}-{name}.gguf", std::process::id()));
        let mut m = MetadataBuilder::new();
        m.set("general.architecture", "llama");
        for (key, value) in [
            ("llama.block_count", 2u32),
            ("llama.embedding_length", 64),
            ("llama.feed_forward_length", 128),
            ("llama.attention.head_count", 4),
            ("llama.context_length", 256),
        ] {
            m.set(key, value);
        }
        m.set("llama.attention.layer_norm_rms_epsilon", 1e-5f32);
        extra(&mut m);
        let mut writer = Writer::new(&path, m).unwrap();
        writer.declare("token_embd.weight", DType::F32, &[3, 64]).unwrap();
        let mut data = writer.start().unwrap();
        data.tensor("token_embd.weight", |sink| sink.write(&[0; 3 * 64 * 4])).unwrap();
        data.finish().unwrap();
        let config = LlamaConfig::from_gguf(&Gguf::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        config
    }

    #[test]
    fn keys_and_their_defaults() {
        let c = with("defaults", |_| ()).unwrap();
        assert_eq!((c.vocab_size, c.head_dim, c.num_kv_heads, c.context_length), (3, 16, 4, 256));
        assert_eq!(
            (c.rope.style, c.rope.rotary_dim, c.rope.scaling),
            (RopeStyle::Interleaved, 16, RopeScaling::None)
        );
        let c = with("keys", |m| {
            m.set("llama.attention.head_count_kv", 2u32);
            m.set("llama.attention.key_length", 32u32);
            m.set("llama.rope.dimension_count", 16u32);
            m.set("llama.rope.freq_base", 5e5f32);
            m.set("llama.rope.scaling.factor", 4f32);
        })
        .unwrap();
        assert_eq!((c.num_kv_heads, c.head_dim, c.rope.rotary_dim), (2, 32, 16));
        assert_eq!((c.rope.theta, c.rope.scaling), (5e5, RopeScaling::Linear { factor: 4.0 }));
    }

    #[test]
    fn yarn_multiplies_its_own_factor() {
        let c = with("yarn", |m| {
            m.set("llama.rope.scaling.type", "yarn");
            m.set("llama.rope.scaling.factor", 2f32);
            m.set("llama.rope.scaling.attn_factor", 0.5f32);
            m.set("llama.rope.scaling.original_context_length", 128u32);
        });
        let scaling = c.unwrap().rope.scaling;
        let RopeScaling::Yarn { original_context, attention_factor, .. } = scaling else { panic!("yarn") };
        assert_eq!(original_context, 128.0);
        assert!((attention_factor - 0.5 * (1.0 + 0.1 * 2f64.ln())).abs() < 1e-12);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let e = with("experts", |m| {
            m.set("llama.expert_count", 8u32);
        })
        .unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedModel);
        let e = with("scaling", |m| {
            m.set("llama.rope.scaling.type", "longrope");
        })
        .unwrap_err();
        assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("longrope"), "{e}");
        let e = with("heads", |m| {
            m.set("llama.attention.head_count_kv", 3u32);
        })
        .unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidFile && e.message().contains("key-value heads"), "{e}");
        let e = with("layers", |m| {
            m.set("llama.block_count", 1_000_000u32);
        })
        .unwrap_err();
        assert!(e.message().contains("llama.block_count"), "{e}");
    }
}
