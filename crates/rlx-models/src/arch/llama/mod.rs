//! Llama (Touvron et al. 2023), and Mistral, which adds a sliding window.
//!
//! [`LlamaConfig`] comes from a `config.json` or from GGUF metadata; the two differ in one trap: GGUF files hold the rows of Q
//! and K in another order, so that rope turns neighbouring elements.

mod config;
mod gguf;
mod graph;
mod hf;
mod names;

use rlx_ir::{Graph, Tensor};

pub use config::{Biases, LlamaConfig};
pub use names::NAMES;

use super::decoder::{Decoder, DecoderLimits, DecoderShape};
use crate::Result;
use crate::files::{ModelFiles, NamedWeights};

/// The divisors of the rope frequencies in a GGUF file.
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// A Llama or Mistral.
#[derive(Debug)]
pub struct Llama {
    config: LlamaConfig,
    weights: NamedWeights,
    inv_freq: Vec<f32>,
}

impl Llama {
    /// The network that `config` describes, with the tensors of `files`.
    ///
    /// # Errors
    /// `InvalidFile` where the rope factors in the file do not fit the config.
    pub fn new(config: LlamaConfig, files: &ModelFiles) -> Result<Self> {
        let weights = NamedWeights::new(files, &NAMES);
        let divisors = if weights.contains(ROPE_FACTORS) {
            weights.expect(ROPE_FACTORS, &[config.rope.rotary_dim / 2])?;
            let data = weights.require(ROPE_FACTORS)?;
            Some(Tensor::from_bytes(data.ty, data.bytes.to_vec())?.to_f32()?)
        } else {
            None
        };
        let inv_freq = config.rope.inv_freq(divisors.as_deref())?;
        Ok(Self { config, weights, inv_freq })
    }

    /// The configuration.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }
}

impl Decoder for Llama {
    fn shape(&self) -> DecoderShape {
        let c = &self.config;
        DecoderShape {
            vocab_size: c.vocab_size,
            num_layers: c.num_layers,
            num_kv_heads: c.num_kv_heads,
            head_dim: c.head_dim,
            context_length: c.context_length,
        }
    }

    fn weights(&self) -> &NamedWeights {
        &self.weights
    }

    fn graph(&self, limits: &DecoderLimits) -> Result<Graph> {
        graph::build(&self.config, &self.weights, &self.inv_freq, limits)
    }
}
