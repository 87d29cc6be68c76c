//! Rotary position embeddings from GGUF metadata.

use rlx_ir::bail;
use rlx_ir::ops::position::rope::RopeStyle;

use super::{RopeConfig, RopeScaling, yarn_attention_factor};
use crate::arch::decoder::GgufWriter;
use crate::arch::gguf_keys::GgufKeys;
use crate::files::limits;
use crate::{Error, Result};

/// The base where the metadata names none.
const DEFAULT_THETA: f64 = 10_000.0;

/// The rope that the keys `rope.*` describe.
///
/// # Errors
/// `InvalidFile` naming the key; `UnsupportedModel` for kinds of scaling that are not built, by name.
pub(in crate::arch) fn read(
    keys: &GgufKeys<'_>,
    style: RopeStyle,
    head_dim: usize,
    context_length: usize,
) -> Result<RopeConfig> {
    Ok(RopeConfig {
        style,
        theta: keys.float("rope.freq_base")?.unwrap_or(DEFAULT_THETA),
        rotary_dim: keys.size("rope.dimension_count", limits::MAX_WIDTH)?.unwrap_or(head_dim),
        scaling: scaling(keys, context_length)?,
    })
}

fn scaling(keys: &GgufKeys<'_>, context_length: usize) -> Result<RopeScaling> {
    let factor = match keys.float("rope.scaling.factor")? {
        Some(factor) => Some(factor),
        None => keys.float("rope.scale_linear")?,
    };
    // 0 stands for none.
    let factor = factor.filter(|f| *f != 0.0);
    let key = "rope.scaling.type";
    Ok(match (keys.str(key)?.unwrap_or("linear"), factor) {
        ("none", _) | ("linear", None) => RopeScaling::None,
        ("linear", Some(factor)) => RopeScaling::Linear { factor },
        ("yarn", factor) => yarn(keys, factor.unwrap_or(1.0), context_length)?,
        (other, _) => {
            let other: String = other.chars().take(80).collect();
            bail!(
                UnsupportedModel,
                "{} \"{other}\" is not supported; none, linear and yarn are",
                keys.key(key)
            )
        }
    })
}

fn yarn(keys: &GgufKeys<'_>, factor: f64, context_length: usize) -> Result<RopeScaling> {
    // What a file may ask for, and the only value that is built.
    for (key, built) in [("rope.scaling.yarn_ext_factor", 1.0), ("rope.scaling.yarn_log_multiplier", 0.0)] {
        // A negative extrapolation factor stands for the usual one.
        if keys.float(key)?.is_some_and(|f| f != built && f >= 0.0) {
            bail!(UnsupportedModel, "{} other than {built} is not supported", keys.key(key));
        }
    }
    let trained = keys.size("rope.scaling.original_context_length", limits::MAX_POSITIONS)?;
    // One key holds the whole factor, as a `config.json` does; the other one comes on top.
    let whole = keys.float("rope.scaling.yarn_attn_factor")?;
    let on_top = keys.float("rope.scaling.attn_factor")?.unwrap_or(1.0);
    Ok(RopeScaling::Yarn {
        factor,
        original_context: trained.unwrap_or(context_length) as f64,
        beta_fast: keys.float("rope.scaling.yarn_beta_fast")?.unwrap_or(32.0),
        beta_slow: keys.float("rope.scaling.yarn_beta_slow")?.unwrap_or(1.0),
        attention_factor: whole.unwrap_or_else(|| yarn_attention_factor(factor, 1.0)) * on_top,
        truncate: true,
    })
}

/// Writes what [`read`] reads. What Llama 3 does to frequencies is in a tensor, whose divisors are
/// [`RopeConfig::divisors`].
///
/// # Errors
/// `UnsupportedModel` where only the tensor could say it, and only the architecture `llama` has it.
pub(in crate::arch) fn write(keys: &mut GgufWriter<'_>, rope: &RopeConfig) -> Result<()> {
    keys.size("rope.dimension_count", rope.rotary_dim);
    keys.float("rope.freq_base", rope.theta);
    match rope.scaling {
        RopeScaling::None => {}
        RopeScaling::Linear { factor } => {
            keys.text("rope.scaling.type", "linear");
            keys.float("rope.scaling.factor", factor);
        }
        RopeScaling::Llama3 { .. } => {
            if keys.key("") != "llama." {
                bail!(
                    UnsupportedModel,
                    "GGUF can say rope scaling \"llama3\" for the architecture llama only"
                );
            }
        }
        RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, attention_factor, .. } => {
            keys.text("rope.scaling.type", "yarn");
            keys.float("rope.scaling.factor", factor);
            keys.size("rope.scaling.original_context_length", original_context as usize);
            let on_top = attention_factor / yarn_attention_factor(factor, 1.0);
            if (on_top - 1.0).abs() > 1e-9 {
                keys.float("rope.scaling.attn_factor", on_top);
            }
            for (key, value, usual) in
                [("yarn_beta_fast", beta_fast, 32.0), ("yarn_beta_slow", beta_slow, 1.0)]
            {
                if value != usual {
                    let key = format!("rope.scaling.{key}");
                    keys.float(&key, value);
                    keys.unread(&key);
                }
            }
        }
    }
    Ok(())
}
