//! A decoder with its weights.

use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::{Builder, DType, Graph, Value, bail};

use super::architecture::DecoderArchitecture;
use super::config::{DecoderConfig, Direction};
use super::inputs::{StepInputs, Tokens};
use super::layers::{Layers, Memory};
use super::limits::DecoderLimits;
use super::ropes::Ropes;
use super::{Decoder, DecoderShape, gguf, hf};
use crate::arch::refuse_unused;
use crate::arch::weight_type::WeightType;
use crate::files::{ModelConfig, ModelFiles, NamedWeights};
use crate::{Error, Result};

/// A decoder of one of the architectures, with its weights.
#[derive(Debug)]
pub struct Network {
    config: DecoderConfig,
    weights: NamedWeights,
    ropes: Ropes,
}

impl Network {
    /// The model of `architecture` in `files`.
    ///
    /// # Errors
    /// `InvalidFile` naming the key that is missing or makes no sense; `UnsupportedModel` for variants that would compute
    /// something else.
    pub fn open(architecture: &DecoderArchitecture, files: &ModelFiles) -> Result<Self> {
        let config = match files.config() {
            ModelConfig::Hf(config) => hf::config_from_hf(architecture, config)?,
            ModelConfig::Gguf(gguf) => gguf::read(architecture, gguf)?,
        };
        let weights = NamedWeights::new(files, files.supported()?.names);
        let ropes = Ropes::new(&config, &weights)?;
        Ok(Self { config, weights, ropes })
    }

    /// The configuration.
    pub fn config(&self) -> &DecoderConfig {
        &self.config
    }

    fn layers<'a>(&'a self, types: WeightType, tokens: &'a Tokens, memory: Memory<'a>) -> Layers<'a> {
        Layers { config: &self.config, weights: &self.weights, types, tokens, memory, ropes: &self.ropes }
    }
}

impl Decoder for Network {
    fn shape(&self) -> DecoderShape {
        let c = &self.config;
        DecoderShape {
            vocab_size: c.vocab_size,
            hidden_size: c.hidden_size,
            num_layers: c.layers.len(),
            num_kv_heads: c.num_kv_heads,
            head_dim: c.head_dim,
            context_length: c.context_length,
            direction: c.attention.direction,
            window: match c.attention.direction {
                Direction::Causal => None,
                Direction::Bidirectional => c.layers.iter().filter_map(|l| l.window).min().map(|w| w / 2),
            },
        }
    }

    fn weights(&self) -> &NamedWeights {
        &self.weights
    }

    fn graph(&self, limits: &DecoderLimits) -> Result<Graph> {
        let c = &self.config;
        if c.attention.direction != Direction::Causal {
            bail!(UnsupportedModel, "tokens of this model see those after them: it has no next token");
        }
        let mut b = Builder::new(c.architecture);
        let inputs = StepInputs::declare(&mut b, limits)?;
        let layers = self.layers(limits.weights, &inputs.tokens, Memory::Cache(&inputs.cache));
        let table = layers.table(&mut b)?;
        let hidden = layers.hidden(&mut b, table, Some(inputs.rows))?;
        let tied = c.tied_head.unwrap_or_else(|| !self.weights.contains("output.weight"));
        let head = match tied {
            true => table,
            false => layers.matrix(&mut b, "output.weight", [c.vocab_size, c.hidden_size])?,
        };
        let mut logits = b.linear(hidden, head, Linear::default(), None, None)?;
        if let Some(cap) = c.final_softcap {
            let cap = b.scalar(DType::F32, cap)?;
            let part = b.div(logits, cap)?;
            let part = b.tanh(part)?;
            logits = b.mul(part, cap)?;
        }
        b.name(logits, "logits")?;
        let graph = b.finish(&[logits])?;
        refuse_unused(&graph, &self.weights, c.architecture)?;
        Ok(graph)
    }

    fn hidden(
        &self,
        b: &mut Builder,
        tokens: &Tokens,
        weights: WeightType,
        direction: Direction,
    ) -> Result<Value> {
        let layers = self.layers(weights, tokens, Memory::Nothing(direction));
        let table = layers.table(b)?;
        layers.hidden(b, table, None)
    }
}
