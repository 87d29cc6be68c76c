//! What every encoder's graph has: inputs over one token axis, and what follows the network for embeddings.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::{Builder, DType, Dim, Graph, Value, bail};

use super::pooling::Pooling;
use crate::arch::weight_type::WeightType;
use crate::sentence_transformers::{self, EmbeddingConfig};
use crate::{Error, Result};

/// The eps of the last normalisation: shorter vectors are divided by it.
const NORMALIZE_EPS: f64 = 1e-12;

/// What the graph of an encoder is to return, and its bounds.
///
/// Inputs: `ids` and `positions` `i32[N]`, `starts` `i32[R + 1]`, where sequence r has the tokens
/// `starts[r]..starts[r + 1]`; with a head that leaves prompts out of pooling also `pool_starts` `i32[2 R + 1]`, where
/// sequence r pools over `pool_starts[2 r + 1]..pool_starts[2 r + 2]`.
#[derive(Clone, Debug)]
pub struct EncoderGraph {
    /// The most tokens of a run: N.
    pub max_tokens: usize,
    /// The most sequences of a run: R.
    pub max_sequences: usize,
    /// The type of matrices.
    pub weights: WeightType,
    /// What is returned.
    pub output: EncoderOutput,
}

/// What the graph of an encoder returns.
#[derive(Clone, Debug)]
pub enum EncoderOutput {
    /// `last_hidden_state`, `f32[N, H]`.
    Hidden,
    /// `pooled`, `f32[R, D]`.
    Pooled(EmbeddingHead),
    /// `last_hidden_state`, `f32[N, H]`, then `pooled`, `f32[R, D]`.
    Both(EmbeddingHead),
}

/// What follows the network: pooling, linear layers, a cut, normalisation, in this order.
#[derive(Clone, Debug)]
pub struct EmbeddingHead {
    /// As the model's files say. The weights of linear layer i are `dense.{i}.weight` and `dense.{i}.bias`.
    pub config: EmbeddingConfig,
    /// Keeps this many components of a vector, before normalisation, instead of as the model's files say.
    pub dims: Option<usize>,
}

/// The inputs of an encoder's graph.
#[derive(Clone, Debug)]
pub(in crate::arch) struct EncoderInputs {
    pub(in crate::arch) tokens: Dim,
    pub(in crate::arch) sequences: Dim,
    pub(in crate::arch) ids: Value,
    pub(in crate::arch) positions: Value,
    pub(in crate::arch) starts: Value,
    pub(super) first_position: usize,
}

impl EncoderInputs {
    /// Declares the inputs of a network whose sequences begin at this position.
    pub(in crate::arch) fn declare(
        b: &mut Builder,
        graph: &EncoderGraph,
        first_position: usize,
    ) -> Result<Self> {
        let tokens = b.symbol("N", graph.max_tokens);
        let sequences = b.symbol("R", graph.max_sequences);
        let ids = b.input("ids", DType::I32, [tokens.clone()])?;
        let positions = b.input("positions", DType::I32, [tokens.clone()])?;
        let starts = b.input("starts", DType::I32, [sequences.clone() + 1.into()])?;
        Ok(Self { tokens, sequences, ids, positions, starts, first_position })
    }

    /// Ends the graph of a network whose token vectors are `hidden` f32[N, H].
    pub(in crate::arch) fn finish(
        self,
        mut b: Builder,
        hidden: Value,
        output: &EncoderOutput,
    ) -> Result<Graph> {
        let head = match output {
            EncoderOutput::Hidden => {
                b.name(hidden, "last_hidden_state")?;
                return Ok(b.finish(&[hidden])?);
            }
            EncoderOutput::Pooled(head) | EncoderOutput::Both(head) => head,
        };
        b.set_scope("embedding");
        let pooled = self.embed(&mut b, hidden, head)?;
        b.name(pooled, "pooled")?;
        match output {
            EncoderOutput::Both(_) => {
                b.name(hidden, "last_hidden_state")?;
                Ok(b.finish(&[hidden, pooled])?)
            }
            _ => Ok(b.finish(&[pooled])?),
        }
    }

    fn embed(&self, b: &mut Builder, hidden: Value, head: &EmbeddingHead) -> Result<Value> {
        let config = &head.config;
        if config.pooling.is_empty() {
            bail!(
                UnsupportedModel,
                "the model gives a vector per token only: say how to pool them (its pooling: {})",
                config.sources.pooling
            );
        }
        let mut pooled = Vec::with_capacity(config.pooling.len());
        let text_starts = match config.pool_prompt {
            true => None,
            false => {
                Some(b.input("pool_starts", DType::I32, [self.sequences.clone() * 2.into() + 1.into()])?)
            }
        };
        for &mode in &config.pooling {
            pooled.push(Pooling { inputs: self, text_starts }.emit(b, hidden, mode)?);
        }
        let mut x = match pooled.as_slice() {
            [one] => *one,
            many => b.concat(many, 1)?,
        };
        for (i, layer) in config.dense.iter().enumerate() {
            let width = width_of(b, x)?;
            if width != layer.in_features {
                bail!(
                    InvalidFile,
                    "{}: in_features is {}, but vectors of {width} come in",
                    layer.source,
                    layer.in_features
                );
            }
            let w = b.weight(&format!("dense.{i}.weight"), DType::F32, [layer.out_features, width])?;
            let bias = match layer.bias {
                true => Some(b.weight(&format!("dense.{i}.bias"), DType::F32, [layer.out_features])?),
                false => None,
            };
            let linear = Linear { activation: activation(layer.activation), ..Linear::default() };
            x = b.linear(x, w, linear, bias, None)?;
        }
        let width = width_of(b, x)?;
        if let Some(dims) = head.dims.or(config.dims.map(|dims| dims.min(width))) {
            if dims == 0 || dims > width {
                bail!(
                    InvalidArgument,
                    "vectors of {dims} components were asked for; the model's have {width}"
                );
            }
            if dims < width {
                x = b.slice(x, 1, Dim::constant(0), Dim::from(dims))?;
            }
        }
        if config.normalize {
            x = b.l2_normalize(x, NORMALIZE_EPS)?;
        }
        Ok(x)
    }
}

pub(super) fn width_of(b: &Builder, x: Value) -> Result<usize> {
    match b.shape(x).last().and_then(Dim::as_usize) {
        Some(width) => Ok(width),
        None => bail!(Bug, "vectors of {} have no constant length", b.ty(x)),
    }
}

fn activation(of: sentence_transformers::Activation) -> Activation {
    use sentence_transformers::Activation as A;
    match of {
        A::Identity => Activation::None,
        A::Tanh => Activation::Tanh,
        A::Relu => Activation::Relu,
        A::Gelu => Activation::Gelu,
        A::Sigmoid => Activation::Sigmoid,
        A::Silu => Activation::Silu,
    }
}
