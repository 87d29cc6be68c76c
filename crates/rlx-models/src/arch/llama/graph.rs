//! The graph of one step of a Llama.

use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::attention::paged_attention::PagedAttention;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::{Builder, Graph, Tensor, Value};

use super::config::{Biases, LlamaConfig};
use crate::Result;
use crate::arch::decoder::{DecoderInputs, DecoderLimits};
use crate::arch::weight_type::vector;
use crate::files::NamedWeights;

/// Builds the graph; `inv_freq` are the angles per position, `[rotary_dim / 2]`.
pub(super) fn build(
    config: &LlamaConfig,
    weights: &NamedWeights,
    inv_freq: &[f32],
    limits: &DecoderLimits,
) -> Result<Graph> {
    let mut b = Builder::new(&config.architecture);
    let inputs = DecoderInputs::declare(&mut b, limits)?;
    let inv_freq = b.constant(Tensor::f32([inv_freq.len()], inv_freq)?);
    b.name(inv_freq, "inv_freq");
    let step = Step { config, weights, inputs: &inputs, inv_freq, limits };
    let logits = step.emit(&mut b)?;
    b.name(logits, "logits");
    Ok(b.finish(&[logits])?)
}

struct Step<'a> {
    config: &'a LlamaConfig,
    weights: &'a NamedWeights,
    inputs: &'a DecoderInputs,
    inv_freq: Value,
    limits: &'a DecoderLimits,
}

impl Step<'_> {
    fn emit(&self, b: &mut Builder) -> Result<Value> {
        let c = self.config;
        b.set_scope("embedding");
        let table = self.matrix(b, "token_embd.weight", [c.vocab_size, c.hidden_size])?;
        let mut x = b.embedding(table, self.inputs.ids, Embedding::default())?;
        b.set_scope("layers.0.attention");
        let weight = vector(b, self.weights, "blk.0.attn_norm.weight", c.hidden_size)?;
        let mut normed = b.rms_norm(x, weight, self.norm())?;
        for layer in 0..c.num_layers {
            b.set_scope(format!("layers.{layer}.attention"));
            let mut attended = self.attention(b, layer, normed)?;
            if layer + 1 == c.num_layers {
                // From here on only the tokens whose logits are wanted matter.
                attended = b.gather(attended, self.inputs.rows, 0)?;
                x = b.gather(x, self.inputs.rows, 0)?;
            }
            let width = c.num_heads * c.head_dim;
            let attended =
                self.linear(b, layer, "attn_output", attended, [c.hidden_size, width], c.attention_bias)?;
            b.set_scope(format!("layers.{layer}.ffn"));
            let weight = vector(b, self.weights, &format!("blk.{layer}.ffn_norm.weight"), c.hidden_size)?;
            (x, normed) = b.add_rms_norm(attended, x, weight, self.norm())?;
            let down = self.feed_forward(b, layer, normed)?;
            let next = layer + 1;
            let name = if next == c.num_layers {
                b.set_scope("head");
                "output_norm.weight".to_owned()
            } else {
                b.set_scope(format!("layers.{next}.attention"));
                format!("blk.{next}.attn_norm.weight")
            };
            let weight = vector(b, self.weights, &name, c.hidden_size)?;
            (x, normed) = b.add_rms_norm(down, x, weight, self.norm())?;
        }
        let tied = c.tied_head.unwrap_or_else(|| !self.weights.contains("output.weight"));
        let head = if tied { table } else { self.matrix(b, "output.weight", [c.vocab_size, c.hidden_size])? };
        Ok(b.linear(normed, head, Linear::default(), None, None)?)
    }

    fn attention(&self, b: &mut Builder, layer: usize, x: Value) -> Result<Value> {
        let c = self.config;
        let DecoderInputs { positions, slots, starts, lengths, table, n, pages, .. } = self.inputs;
        let (q_width, kv_width) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
        let q = self.linear(b, layer, "attn_q", x, [q_width, c.hidden_size], c.attention_bias)?;
        let k = self.linear(b, layer, "attn_k", x, [kv_width, c.hidden_size], c.attention_bias)?;
        let v = self.linear(b, layer, "attn_v", x, [kv_width, c.hidden_size], c.attention_bias)?;
        let heads =
            |b: &mut Builder, x, heads: usize| b.reshape(x, [n.clone(), heads.into(), c.head_dim.into()]);
        let (q, k, v) =
            (heads(b, q, c.num_heads)?, heads(b, k, c.num_kv_heads)?, heads(b, v, c.num_kv_heads)?);
        let q = b.rope(q, *positions, self.inv_freq, c.rope.style, c.rope.scale())?;
        let k = b.rope(k, *positions, self.inv_freq, c.rope.style, c.rope.scale())?;
        let shape = [pages.clone(), self.limits.page_len.into(), c.num_kv_heads.into(), c.head_dim.into()];
        let k_state = b.state(&format!("k.{layer}"), self.limits.kv_dtype, shape.clone())?;
        let v_state = b.state(&format!("v.{layer}"), self.limits.kv_dtype, shape)?;
        let k_state = b.kv_write(k_state, k, *slots)?;
        let v_state = b.kv_write(v_state, v, *slots)?;
        let mask = match c.sliding_window {
            Some(window) => Mask::SlidingWindow { window },
            None => Mask::Causal,
        };
        let attention = PagedAttention { mask, scale: 1.0 / libm::sqrt(c.head_dim as f64), softcap: None };
        let out = b.paged_attention(q, k_state, v_state, *starts, *lengths, *table, attention)?;
        Ok(b.reshape(out, [n.clone(), q_width.into()])?)
    }

    fn feed_forward(&self, b: &mut Builder, layer: usize, x: Value) -> Result<Value> {
        let c = self.config;
        let (hidden, inner) = (c.hidden_size, c.intermediate_size);
        let gate = self.linear(b, layer, "ffn_gate", x, [inner, hidden], c.mlp_bias)?;
        let up = self.linear(b, layer, "ffn_up", x, [inner, hidden], c.mlp_bias)?;
        let gate = b.silu(gate)?;
        let product = b.mul(gate, up)?;
        self.linear(b, layer, "ffn_down", product, [hidden, inner], c.mlp_bias)
    }

    fn linear(
        &self,
        b: &mut Builder,
        layer: usize,
        name: &str,
        x: Value,
        shape: [usize; 2],
        biases: Biases,
    ) -> Result<Value> {
        let weight = self.matrix(b, &format!("blk.{layer}.{name}.weight"), shape)?;
        let bias_name = format!("blk.{layer}.{name}.bias");
        let has_bias = match biases {
            Biases::Absent => false,
            Biases::Required => true,
            Biases::AsStored => self.weights.contains(&bias_name),
        };
        let bias = if has_bias { Some(vector(b, self.weights, &bias_name, shape[0])?) } else { None };
        Ok(b.linear(x, weight, Linear::default(), bias, None)?)
    }

    fn matrix(&self, b: &mut Builder, name: &str, shape: [usize; 2]) -> Result<Value> {
        self.limits.weights.matrix(b, self.weights, name, shape)
    }

    fn norm(&self) -> RmsNorm {
        RmsNorm { eps: self.config.rms_norm_eps, unit_offset: false }
    }
}
