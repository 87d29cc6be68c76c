//! The angles of all ropes of a decoder: its layers have one or two kinds.

use rlx_ir::{Builder, Tensor, Value};

use super::config::DecoderConfig;
use crate::arch::rope::RopeConfig;
use crate::files::NamedWeights;
use crate::{Error, Result};

/// The divisors of the rope frequencies in a GGUF file.
pub(crate) const ROPE_FACTORS: &str = "rope_freqs.weight";

/// The kinds of rope, with the angle per position of each pair.
#[derive(Debug)]
pub(super) struct Ropes(Vec<(RopeConfig, Vec<f32>)>);

impl Ropes {
    /// The ropes of `config`.
    ///
    /// # Errors
    /// `InvalidFile` where the divisors in the file do not fit them.
    pub fn new(config: &DecoderConfig, weights: &NamedWeights) -> Result<Self> {
        let mut kinds: Vec<(RopeConfig, Vec<f32>)> = Vec::new();
        for layer in &config.layers {
            if kinds.iter().all(|(rope, _)| *rope != layer.rope) {
                let divisors = divisors(weights, layer.rope.rotary_dim / 2)?;
                kinds.push((layer.rope, layer.rope.inv_freq(divisors.as_deref())?));
            }
        }
        Ok(Self(kinds))
    }

    /// The place of a rope among them.
    pub fn of(&self, rope: &RopeConfig) -> usize {
        self.0.iter().position(|(kind, _)| kind == rope).unwrap_or(0)
    }

    /// Declares the angles of each.
    ///
    /// # Errors
    /// `Bug`.
    pub fn declare(&self, b: &mut Builder) -> Result<Vec<Value>> {
        let declare = |(index, (_, inv_freq)): (usize, &(RopeConfig, Vec<f32>))| {
            let value = b.constant(Tensor::f32([inv_freq.len()], inv_freq)?);
            let name = if index == 0 { "inv_freq".to_owned() } else { format!("inv_freq.{index}") };
            b.name(value, &name)?;
            Ok::<_, Error>(value)
        };
        self.0.iter().enumerate().map(declare).collect()
    }
}

fn divisors(weights: &NamedWeights, pairs: usize) -> Result<Option<Vec<f32>>> {
    if !weights.contains(ROPE_FACTORS) {
        return Ok(None);
    }
    weights.expect(ROPE_FACTORS, &[pairs])?;
    let data = weights.require(ROPE_FACTORS)?;
    Ok(Some(Tensor::from_bytes(data.ty, data.bytes.to_vec())?.to_f32()?))
}
