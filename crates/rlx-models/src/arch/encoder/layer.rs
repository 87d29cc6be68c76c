//! The parts that the layers of encoders are made of.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::position::rope::RopeStyle;
use rlx_ir::{Builder, Dim, Tensor, Value};

use super::graph::EncoderInputs;
use crate::Result;
use crate::arch::llama::Biases;
use crate::arch::rope::RopeConfig;
use crate::arch::weight_type::{WeightType, vector};
use crate::files::NamedWeights;

/// The heads of attention.
#[derive(Clone, Copy, Debug)]
pub(in crate::arch) struct Heads {
    /// How many.
    pub(in crate::arch) count: usize,
    /// Components of one head's vector.
    pub(in crate::arch) dim: usize,
}

impl Heads {
    fn width(self) -> usize {
        self.count * self.dim
    }
}

/// Rotary position embedding with its frequencies as a constant of the graph.
#[derive(Clone, Copy, Debug)]
pub(in crate::arch) struct Rotary {
    inv_freq: Value,
    style: RopeStyle,
    scale: f64,
}

impl Rotary {
    /// Puts the frequencies into the graph, as `name`.
    pub(in crate::arch) fn new(b: &mut Builder, rope: &RopeConfig, name: &str) -> Result<Self> {
        let inv_freq = rope.inv_freq(None)?;
        let value = b.constant(Tensor::f32([inv_freq.len()], &inv_freq)?);
        b.name(value, name)?;
        Ok(Self { inv_freq: value, style: rope.style, scale: rope.scale() })
    }

    fn turn(&self, b: &mut Builder, x: Value, positions: Value) -> Result<Value> {
        Ok(b.rope(x, positions, self.inv_freq, self.style, self.scale)?)
    }
}

/// The vectors of the tokens, f32[N, hidden_size], with that of the first token type where there are types.
pub(in crate::arch) fn embed_tokens(
    b: &mut Builder,
    weights: &NamedWeights,
    types: WeightType,
    inputs: &EncoderInputs,
    [vocab_size, hidden_size]: [usize; 2],
    token_types: Option<usize>,
) -> Result<Value> {
    let table = types.matrix(b, weights, "token_embd.weight", [vocab_size, hidden_size])?;
    let x = b.embedding(table, inputs.ids, Embedding::default())?;
    let Some(kinds) = token_types else { return Ok(x) };
    weights.expect("token_types.weight", &[kinds, hidden_size])?;
    let kinds = b.weight("token_types.weight", rlx_ir::DType::F32, [kinds, hidden_size])?;
    // One text has tokens of the first kind only.
    let kind = b.slice(kinds, 0, Dim::constant(0), Dim::constant(1))?;
    Ok(b.add(x, kind)?)
}

/// One layer's tensors: those whose names start with `prefix`.
pub(in crate::arch) struct Layer<'a> {
    pub(in crate::arch) weights: &'a NamedWeights,
    pub(in crate::arch) types: WeightType,
    pub(in crate::arch) prefix: String,
    /// What the norms add to the variance.
    pub(in crate::arch) eps: f64,
}

impl<'a> Layer<'a> {
    /// The layer `index`, or what stands outside of layers.
    pub(in crate::arch) fn new(
        weights: &'a NamedWeights,
        types: WeightType,
        index: Option<usize>,
        eps: f64,
    ) -> Self {
        let prefix = index.map_or_else(String::new, |i| format!("blk.{i}."));
        Self { weights, types, prefix, eps }
    }

    /// Whether the tensor is there.
    pub(in crate::arch) fn has(&self, name: &str) -> bool {
        self.weights.contains(&format!("{}{name}", self.prefix))
    }

    fn bias(&self, b: &mut Builder, name: &str, len: usize, biases: Biases) -> Result<Option<Value>> {
        let is_there = match biases {
            Biases::Absent => false,
            Biases::Required => true,
            Biases::AsStored => self.has(&format!("{name}.bias")),
        };
        match is_there {
            true => vector(b, self.weights, &format!("{}{name}.bias", self.prefix), len).map(Some),
            false => Ok(None),
        }
    }

    /// `activation(x w^T + bias)`, w being `[to, from]`.
    pub(in crate::arch) fn linear(
        &self,
        b: &mut Builder,
        name: &str,
        x: Value,
        [to, from]: [usize; 2],
        biases: Biases,
        activation: Activation,
    ) -> Result<Value> {
        let weight =
            self.types.matrix(b, self.weights, &format!("{}{name}.weight", self.prefix), [to, from])?;
        let bias = self.bias(b, name, to, biases)?;
        Ok(b.linear(x, weight, Linear { activation, ..Linear::default() }, bias, None)?)
    }

    /// The norm of `x`.
    pub(in crate::arch) fn norm(
        &self,
        b: &mut Builder,
        name: &str,
        x: Value,
        len: usize,
        biases: Biases,
    ) -> Result<Value> {
        let weight = vector(b, self.weights, &format!("{}{name}.weight", self.prefix), len)?;
        let bias = self.bias(b, name, len, biases)?;
        Ok(b.layer_norm(x, weight, bias, self.eps)?)
    }

    /// `x + residual`, and its norm.
    pub(in crate::arch) fn add_norm(
        &self,
        b: &mut Builder,
        name: &str,
        [x, residual]: [Value; 2],
        len: usize,
        biases: Biases,
    ) -> Result<(Value, Value)> {
        let weight = vector(b, self.weights, &format!("{}{name}.weight", self.prefix), len)?;
        let bias = self.bias(b, name, len, biases)?;
        Ok(b.add_layer_norm(x, residual, weight, bias, self.eps)?)
    }

    /// Attention of the tokens of each sequence, with the product after it: f32[N, hidden_size]. The products before it are
    /// `attn_qkv`, or `attn_q`, `attn_k` and `attn_v`.
    pub(in crate::arch) fn attention(
        &self,
        b: &mut Builder,
        inputs: &EncoderInputs,
        x: Value,
        hidden_size: usize,
        spec: &AttentionSpec<'_>,
    ) -> Result<Value> {
        let (heads, biases) = (spec.heads, spec.biases);
        let [mut q, mut k, v] = self.qkv(b, inputs, x, hidden_size, heads, biases)?;
        if let Some(rotary) = spec.rotary {
            q = rotary.turn(b, q, inputs.positions)?;
            k = rotary.turn(b, k, inputs.positions)?;
        }
        let attention =
            Attention { mask: spec.mask, scale: 1.0 / libm::sqrt(heads.dim as f64), softcap: None };
        let y = b.attention(q, k, v, inputs.starts, None, attention)?;
        let y = b.reshape(y, [inputs.tokens.clone(), heads.width().into()])?;
        self.linear(b, "attn_output", y, [hidden_size, heads.width()], biases, Activation::None)
    }

    /// Queries, keys and values, each f32[N, heads, dim].
    fn qkv(
        &self,
        b: &mut Builder,
        inputs: &EncoderInputs,
        x: Value,
        hidden_size: usize,
        heads: Heads,
        biases: Biases,
    ) -> Result<[Value; 3]> {
        let mut parts = [x; 3];
        let shape = |count: usize| [inputs.tokens.clone(), count.into(), heads.dim.into()];
        if self.has("attn_qkv.weight") {
            let joint = [3 * heads.width(), hidden_size];
            let joint = self.linear(b, "attn_qkv", x, joint, biases, Activation::None)?;
            let joint = b.reshape(joint, shape(3 * heads.count))?;
            for (i, part) in parts.iter_mut().enumerate() {
                *part = b.slice(joint, 1, Dim::from(i * heads.count), Dim::from(heads.count))?;
            }
            return Ok(parts);
        }
        for (part, name) in parts.iter_mut().zip(["attn_q", "attn_k", "attn_v"]) {
            let y = self.linear(b, name, x, [heads.width(), hidden_size], biases, Activation::None)?;
            *part = b.reshape(y, shape(heads.count))?;
        }
        Ok(parts)
    }
}

/// How a layer attends.
#[derive(Clone, Copy, Debug)]
pub(in crate::arch) struct AttentionSpec<'a> {
    pub(in crate::arch) heads: Heads,
    pub(in crate::arch) rotary: Option<&'a Rotary>,
    pub(in crate::arch) mask: Mask,
    /// Of the products before and after it.
    pub(in crate::arch) biases: Biases,
}
