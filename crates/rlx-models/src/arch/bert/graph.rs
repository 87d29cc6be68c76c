//! The graph of a BERT model.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::{Builder, DType, Dim, Graph, Value};

use super::config::BertConfig;
use crate::Result;
use crate::arch::encoder::{EncoderGraph, EncoderInputs};
use crate::arch::weight_type::{WeightType, vector};
use crate::files::NamedWeights;

/// Builds the graph of a model with the tensors `weights`.
///
/// # Errors
/// `NotFound` or `InvalidFile` naming a tensor that is missing or of another shape than the config says; `InvalidArgument`
/// for a head that does not fit.
pub fn build(config: &BertConfig, weights: &NamedWeights, graph: &EncoderGraph) -> Result<Graph> {
    let mut b = Builder::new("bert");
    let inputs = EncoderInputs::declare(&mut b, graph)?;
    let mut x = embeddings(&mut b, config, weights, graph.weights, &inputs)?;
    for layer in 0..config.num_layers {
        let prefix = format!("blk.{layer}.");
        let layer = Layer { config, weights, types: graph.weights, prefix, index: layer };
        x = layer.attention(&mut b, &inputs, x)?;
        x = layer.feed_forward(&mut b, x)?;
    }
    inputs.finish(b, x, &graph.output)
}

fn embeddings(
    b: &mut Builder,
    config: &BertConfig,
    weights: &NamedWeights,
    matrices: WeightType,
    inputs: &EncoderInputs,
) -> Result<Value> {
    b.set_scope("embeddings");
    let hidden = config.hidden_size;
    let tokens = matrices.matrix(b, weights, "token_embd.weight", [config.vocab_size, hidden])?;
    let positions = matrices.without_blocks().matrix(
        b,
        weights,
        "position_embd.weight",
        [config.max_positions, hidden],
    )?;
    weights.expect("token_types.weight", &[config.type_vocab_size, hidden])?;
    let types = b.weight("token_types.weight", DType::F32, [config.type_vocab_size, hidden])?;
    let x = b.embedding(tokens, inputs.ids, Embedding::default())?;
    let place = b.embedding(positions, inputs.positions, Embedding::default())?;
    // One text has tokens of the first kind only.
    let kind = b.slice(types, 0, Dim::constant(0), Dim::constant(1))?;
    let x = b.add(x, kind)?;
    let x = b.add(x, place)?;
    let weight = vector(b, weights, "token_embd_norm.weight", hidden)?;
    let bias = vector(b, weights, "token_embd_norm.bias", hidden)?;
    Ok(b.layer_norm(x, weight, Some(bias), config.layer_norm_eps)?)
}

struct Layer<'a> {
    config: &'a BertConfig,
    weights: &'a NamedWeights,
    types: WeightType,
    prefix: String,
    index: usize,
}

impl Layer<'_> {
    fn attention(&self, b: &mut Builder, inputs: &EncoderInputs, x: Value) -> Result<Value> {
        b.set_scope(format!("layers.{}.attention", self.index));
        let (hidden, heads, head_dim) =
            (self.config.hidden_size, self.config.num_heads, self.config.head_dim());
        let mut parts = [x; 3];
        for (part, name) in parts.iter_mut().zip(["attn_q", "attn_k", "attn_v"]) {
            let y = self.linear(b, name, x, hidden, hidden, Activation::None)?;
            *part = b.reshape(y, [inputs.tokens.clone(), Dim::from(heads), Dim::from(head_dim)])?;
        }
        let [q, k, v] = parts;
        let scale = 1.0 / (head_dim as f64).sqrt();
        let y =
            b.attention(q, k, v, inputs.starts, None, Attention { mask: Mask::None, scale, softcap: None })?;
        let y = b.reshape(y, [inputs.tokens.clone(), Dim::from(hidden)])?;
        let y = self.linear(b, "attn_output", y, hidden, hidden, Activation::None)?;
        self.add_norm(b, "attn_output_norm", y, x)
    }

    fn feed_forward(&self, b: &mut Builder, x: Value) -> Result<Value> {
        b.set_scope(format!("layers.{}.feed_forward", self.index));
        let (hidden, inner) = (self.config.hidden_size, self.config.intermediate_size);
        let y = self.linear(b, "ffn_up", x, hidden, inner, self.config.activation)?;
        let y = self.linear(b, "ffn_down", y, inner, hidden, Activation::None)?;
        self.add_norm(b, "layer_output_norm", y, x)
    }

    fn linear(
        &self,
        b: &mut Builder,
        name: &str,
        x: Value,
        from: usize,
        to: usize,
        activation: Activation,
    ) -> Result<Value> {
        let weight =
            self.types.matrix(b, self.weights, &format!("{}{name}.weight", self.prefix), [to, from])?;
        let bias = format!("{}{name}.bias", self.prefix);
        let bias = match self.weights.contains(&bias) {
            true => Some(vector(b, self.weights, &bias, to)?),
            false => None,
        };
        Ok(b.linear(x, weight, Linear { activation, ..Linear::default() }, bias, None)?)
    }

    fn add_norm(&self, b: &mut Builder, name: &str, x: Value, residual: Value) -> Result<Value> {
        let hidden = self.config.hidden_size;
        let weight = vector(b, self.weights, &format!("{}{name}.weight", self.prefix), hidden)?;
        let bias = vector(b, self.weights, &format!("{}{name}.bias", self.prefix), hidden)?;
        let (_, normed) = b.add_layer_norm(x, residual, weight, Some(bias), self.config.layer_norm_eps)?;
        Ok(normed)
    }
}
