//! What only Gemma 3 has in its metadata.

use rlx_gguf::Value;
use rlx_ir::bail;

use super::{PATTERN, SLIDING_THETA, slides};
use crate::arch::decoder::{DecoderConfig, Direction, GgufWriter};
use crate::arch::gguf_keys::GgufKeys;
use crate::arch::rope::{RopeConfig, RopeScaling};
use crate::files::limits;
use crate::{Error, Result};

/// The layers of the model of 27 billion parameters, whose scores alone are scaled by something else than the length of a head.
const LAYERS_OF_27B: usize = 62;

pub(super) fn finish(keys: &GgufKeys<'_>, config: &mut DecoderConfig) -> Result<()> {
    let window = keys.size("attention.sliding_window", limits::MAX_POSITIONS)?;
    let sliding_theta = keys.float("rope.freq_base_swa")?.unwrap_or(SLIDING_THETA);
    let sliding = sliding_layers(keys, config.layers.len())?;
    if let Some(window) = window {
        for (layer, _) in config.layers.iter_mut().zip(sliding).filter(|(_, slides)| *slides) {
            layer.window = Some(window);
            // What stretches the full layers does not stretch those with a window.
            layer.rope = RopeConfig { theta: sliding_theta, scaling: RopeScaling::None, ..layer.rope };
        }
    }
    if config.layers.len() == LAYERS_OF_27B {
        config.attention.scale = 1.0 / libm::sqrt((config.hidden_size / config.num_heads) as f64);
    }
    // 0 stands for none.
    let cap = |name| Ok::<_, Error>(keys.float(name)?.filter(|cap| *cap != 0.0));
    config.attention.softcap = cap("attn_logit_softcapping")?;
    config.final_softcap = cap("final_logit_softcapping")?;
    Ok(())
}

/// [`finish`] for EmbeddingGemma.
pub(super) fn finish_embedding(keys: &GgufKeys<'_>, config: &mut DecoderConfig) -> Result<()> {
    finish(keys, config)?;
    config.attention.direction = Direction::Bidirectional;
    Ok(())
}

/// Writes what [`finish`] reads.
pub(super) fn write(keys: &mut GgufWriter<'_>, config: &DecoderConfig) {
    let slides_here: Vec<bool> = config.layers.iter().map(|layer| layer.window.is_some()).collect();
    if let Some(layer) = config.layers.iter().find(|layer| layer.window.is_some()) {
        keys.size("attention.sliding_window", layer.window.unwrap_or_default());
        keys.float("rope.freq_base_swa", layer.rope.theta);
        let usual = slides_here.iter().enumerate().all(|(i, is)| *is == slides(i, PATTERN));
        if !usual {
            keys.flags("attention.sliding_window_pattern", &slides_here);
        }
    }
    if let Some(cap) = config.attention.softcap {
        keys.float("attn_logit_softcapping", cap);
        keys.unread("attn_logit_softcapping");
    }
    if let Some(cap) = config.final_softcap {
        keys.float("final_logit_softcapping", cap);
    }
}

/// Whether each layer has a window: a list, or every how many layers one is full.
fn sliding_layers(keys: &GgufKeys<'_>, num_layers: usize) -> Result<Vec<bool>> {
    let key = keys.key("attention.sliding_window_pattern");
    let metadata = keys.metadata();
    let list = match metadata.get(&key) {
        None => return Ok((0..num_layers).map(|i| slides(i, PATTERN)).collect()),
        Some(Value::Array(_)) => match metadata.bools(&key) {
            Ok(list) => list.unwrap_or_default(),
            Err(_) => metadata.u32s(&key)?.unwrap_or_default().into_iter().map(|n| n != 0).collect(),
        },
        Some(_) => {
            let pattern = metadata.require_usize(&key)?;
            return Ok((0..num_layers).map(|i| slides(i, pattern)).collect());
        }
    };
    if list.len() != num_layers {
        bail!(InvalidFile, "metadata key `{key}` has {} items for {num_layers} layers", list.len());
    }
    Ok(list)
}
