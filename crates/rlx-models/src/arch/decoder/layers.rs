//! The layers of a decoder: one graph code for all architectures, with and without a cache.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::activation::gelu::Approximate;
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::paged_attention::PagedAttention;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::moe::moe::MoeOperands;
use rlx_ir::ops::reduce::reduce::KeepDims;
use rlx_ir::{Builder, Value, bail};

use super::config::{Biases, DecoderConfig, Direction, Experts, FeedForward, LayerConfig};
use super::inputs::{Cache, Tokens};
use super::ropes::Ropes;
use crate::arch::weight_type::{WeightType, vector};
use crate::files::NamedWeights;
use crate::{Error, Result};

/// Where the keys and values of tokens are.
pub(super) enum Memory<'a> {
    /// In pages that later steps read.
    Cache(&'a Cache),
    /// Nowhere: all tokens of a sequence are there at once, and see each other so.
    Nothing(Direction),
}

/// What the layers of one graph share.
pub(super) struct Layers<'a> {
    pub config: &'a DecoderConfig,
    pub weights: &'a NamedWeights,
    pub types: WeightType,
    pub tokens: &'a Tokens,
    pub memory: Memory<'a>,
    pub ropes: &'a Ropes,
}

impl Layers<'_> {
    /// The table of the tokens' vectors, `[vocab_size, hidden_size]`.
    pub fn table(&self, b: &mut Builder) -> Result<Value> {
        b.set_scope("embedding");
        self.matrix(b, "token_embd.weight", [self.config.vocab_size, self.config.hidden_size])
    }

    /// The vectors after the last norm: those of the tokens `rows`, or of all where there are none.
    pub fn hidden(&self, b: &mut Builder, table: Value, rows: Option<Value>) -> Result<Value> {
        let c = self.config;
        let ropes = self.ropes.declare(b)?;
        let embedding = Embedding { scale: c.embedding_scale, ..Embedding::default() };
        let mut x = b.embedding(table, self.tokens.ids, embedding)?;
        b.set_scope("layers.0.attention");
        let weight = self.vector(b, "blk.0.attn_norm.weight", c.hidden_size)?;
        let mut normed = b.rms_norm(x, weight, c.norm)?;
        for (index, config) in c.layers.iter().enumerate() {
            let layer = Layer { all: self, config, index };
            b.set_scope(format!("layers.{index}.attention"));
            let mut attended = layer.attention(b, normed, ropes[self.ropes.of(&config.rope)])?;
            if let Some(rows) = rows
                && index + 1 == c.layers.len()
            {
                // From here on only the tokens whose vectors are wanted matter.
                attended = b.gather(attended, rows, 0)?;
                x = b.gather(x, rows, 0)?;
            }
            let shape = [c.hidden_size, c.num_heads * c.head_dim];
            let attended = layer.linear(b, "attn_output", attended, shape, c.attention.output_bias)?;
            let attended = layer.post_norm(b, "post_attention_norm", attended)?;
            b.set_scope(format!("layers.{index}.ffn"));
            let weight = self.vector(b, &layer.name("ffn_norm.weight"), c.hidden_size)?;
            (x, normed) = b.add_rms_norm(attended, x, weight, c.norm)?;
            let fed = layer.feed_forward(b, normed)?;
            let fed = layer.post_norm(b, "post_ffw_norm", fed)?;
            let next = index + 1;
            let name = if next == c.layers.len() {
                b.set_scope("head");
                "output_norm.weight".to_owned()
            } else {
                b.set_scope(format!("layers.{next}.attention"));
                format!("blk.{next}.attn_norm.weight")
            };
            let weight = self.vector(b, &name, c.hidden_size)?;
            (x, normed) = b.add_rms_norm(fed, x, weight, c.norm)?;
        }
        Ok(normed)
    }

    /// Declares a matrix.
    pub fn matrix(&self, b: &mut Builder, name: &str, shape: [usize; 2]) -> Result<Value> {
        self.types.matrix(b, self.weights, name, shape)
    }

    fn vector(&self, b: &mut Builder, name: &str, len: usize) -> Result<Value> {
        vector(b, self.weights, name, len)
    }
}

struct Layer<'a> {
    all: &'a Layers<'a>,
    config: &'a LayerConfig,
    index: usize,
}

impl Layer<'_> {
    fn name(&self, tensor: &str) -> String {
        format!("blk.{}.{tensor}", self.index)
    }

    fn attention(&self, b: &mut Builder, x: Value, inv_freq: Value) -> Result<Value> {
        let (c, bias) = (self.all.config, self.all.config.attention.qkv_bias);
        let (q_width, kv_width) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
        let q = self.linear(b, "attn_q", x, [q_width, c.hidden_size], bias)?;
        let k = self.linear(b, "attn_k", x, [kv_width, c.hidden_size], bias)?;
        let v = self.linear(b, "attn_v", x, [kv_width, c.hidden_size], bias)?;
        let n = &self.all.tokens.n;
        let heads =
            |b: &mut Builder, x, heads: usize| b.reshape(x, [n.clone(), heads.into(), c.head_dim.into()]);
        let q = heads(b, q, c.num_heads)?;
        let k = heads(b, k, c.num_kv_heads)?;
        let v = heads(b, v, c.num_kv_heads)?;
        let q = self.rotated(b, "attn_q_norm.weight", q, inv_freq)?;
        let k = self.rotated(b, "attn_k_norm.weight", k, inv_freq)?;
        let out = self.attend(b, q, k, v)?;
        Ok(b.reshape(out, [n.clone(), q_width.into()])?)
    }

    /// Queries or keys as attention takes them: normalised, where the architecture does that, and rotated.
    fn rotated(&self, b: &mut Builder, norm: &str, x: Value, inv_freq: Value) -> Result<Value> {
        let c = self.all.config;
        let x = if c.attention.qk_norm {
            let weight = self.all.vector(b, &self.name(norm), c.head_dim)?;
            b.rms_norm(x, weight, c.norm)?
        } else {
            x
        };
        let rope = &self.config.rope;
        Ok(b.rope(x, self.all.tokens.positions, inv_freq, rope.style, rope.scale())?)
    }

    fn attend(&self, b: &mut Builder, q: Value, k: Value, v: Value) -> Result<Value> {
        let (c, starts) = (self.all.config, self.all.tokens.starts);
        let (scale, softcap) = (c.attention.scale, c.attention.softcap);
        let cache = match self.all.memory {
            Memory::Cache(cache) => cache,
            Memory::Nothing(direction) => {
                let mask = self.config.mask(direction);
                return Ok(b.attention(q, k, v, starts, None, Attention { mask, scale, softcap })?);
            }
        };
        let shape = [cache.pages.clone(), cache.page_len.into(), c.num_kv_heads.into(), c.head_dim.into()];
        let k_state = b.state(&format!("k.{}", self.index), cache.dtype, shape.clone())?;
        let v_state = b.state(&format!("v.{}", self.index), cache.dtype, shape)?;
        let k_state = b.kv_write(k_state, k, cache.slots)?;
        let v_state = b.kv_write(v_state, v, cache.slots)?;
        let attention = PagedAttention { mask: self.config.mask(Direction::Causal), scale, softcap };
        Ok(b.paged_attention(q, k_state, v_state, starts, cache.lengths, cache.table, attention)?)
    }

    fn feed_forward(&self, b: &mut Builder, x: Value) -> Result<Value> {
        let hidden = self.all.config.hidden_size;
        match self.config.feed_forward {
            FeedForward::Gated { intermediate_size: inner, bias } => {
                let gate = self.linear(b, "ffn_gate", x, [inner, hidden], bias)?;
                let up = self.linear(b, "ffn_up", x, [inner, hidden], bias)?;
                let gate = activated(b, self.all.config.activation, gate)?;
                let product = b.mul(gate, up)?;
                self.linear(b, "ffn_down", product, [hidden, inner], bias)
            }
            FeedForward::Experts(experts) => self.experts(b, x, experts),
        }
    }

    /// The router's probabilities are a softmax over all experts, of which the largest count.
    fn experts(&self, b: &mut Builder, x: Value, experts: Experts) -> Result<Value> {
        let hidden = self.all.config.hidden_size;
        let Experts { count, chosen, intermediate_size: inner, normalized } = experts;
        // Small beside the experts, and its errors choose others.
        let router = self.name("ffn_gate_inp.weight");
        let router = self.all.types.without_blocks().matrix(b, self.all.weights, &router, [count, hidden])?;
        let scores = b.linear(x, router, Linear::default(), None, None)?;
        let probabilities = b.softmax(scores, -1, 1.0)?;
        let (mut weights, chosen) = b.top_k(probabilities, chosen)?;
        if normalized {
            let sum = b.reduce_sum(weights, &[-1], KeepDims::Yes)?;
            weights = b.div(weights, sum)?;
        }
        let mut stack = |name: &str, shape: [usize; 2]| {
            let name = self.name(&format!("{name}.weight"));
            self.all.types.stack(b, self.all.weights, &name, [count, shape[0], shape[1]])
        };
        let gate = stack("ffn_gate_exps", [inner, hidden])?;
        let up = stack("ffn_up_exps", [inner, hidden])?;
        let down = stack("ffn_down_exps", [hidden, inner])?;
        let operands = MoeOperands { x, weights, experts: chosen, gate, up, down };
        Ok(b.moe(operands, self.all.config.activation)?)
    }

    fn post_norm(&self, b: &mut Builder, name: &str, x: Value) -> Result<Value> {
        let c = self.all.config;
        if !c.post_norms {
            return Ok(x);
        }
        let weight = self.all.vector(b, &self.name(&format!("{name}.weight")), c.hidden_size)?;
        Ok(b.rms_norm(x, weight, c.norm)?)
    }

    fn linear(
        &self,
        b: &mut Builder,
        name: &str,
        x: Value,
        shape: [usize; 2],
        biases: Biases,
    ) -> Result<Value> {
        let weight = self.all.matrix(b, &self.name(&format!("{name}.weight")), shape)?;
        let bias_name = self.name(&format!("{name}.bias"));
        let has_bias = match biases {
            Biases::Absent => false,
            Biases::Required => true,
            Biases::AsStored => self.all.weights.contains(&bias_name),
        };
        let bias = if has_bias { Some(self.all.vector(b, &bias_name, shape[0])?) } else { None };
        Ok(b.linear(x, weight, Linear::default(), bias, None)?)
    }
}

fn activated(b: &mut Builder, activation: Activation, x: Value) -> Result<Value> {
    Ok(match activation {
        Activation::Silu => b.silu(x)?,
        Activation::Gelu => b.gelu(x, Approximate::None)?,
        Activation::GeluTanh => b.gelu(x, Approximate::Tanh)?,
        other => bail!(Bug, "a feed-forward part with {}", other.name()),
    })
}
