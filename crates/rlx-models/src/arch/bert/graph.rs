//! The graph of a BERT model.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::{Builder, Graph};

use super::config::{BertConfig, POSITIONS};
use crate::Result;
use crate::arch::encoder::{AttentionSpec, EncoderGraph, EncoderInputs, Heads, Layer, embed_tokens};
use crate::arch::llama::Biases;
use crate::files::NamedWeights;

/// Builds the graph of a model with the tensors `weights`.
pub(super) fn build(config: &BertConfig, weights: &NamedWeights, graph: &EncoderGraph) -> Result<Graph> {
    let (hidden, inner) = (config.hidden_size, config.intermediate_size);
    let types = graph.weights;
    let mut b = Builder::new("bert");
    let inputs = EncoderInputs::declare(&mut b, graph, config.positions.first())?;

    b.set_scope("embeddings");
    let sizes = [config.vocab_size, hidden];
    let x = embed_tokens(&mut b, weights, types, &inputs, sizes, config.type_vocab_size)?;
    let rows = config.max_positions + config.positions.first();
    let table = types.without_blocks().matrix(&mut b, weights, POSITIONS, [rows, hidden])?;
    let place = b.embedding(table, inputs.positions, Embedding::default())?;
    let x = b.add(x, place)?;
    let outside = Layer::new(weights, types, None, config.layer_norm_eps);
    let mut x = outside.norm(&mut b, "token_embd_norm", x, hidden, Biases::Required)?;

    let attention = AttentionSpec {
        heads: Heads { count: config.num_heads, dim: config.head_dim() },
        rotary: None,
        mask: Mask::None,
        biases: config.biases,
    };
    for index in 0..config.num_layers {
        let layer = Layer::new(weights, types, Some(index), config.layer_norm_eps);
        b.set_scope(format!("layers.{index}.attention"));
        let y = layer.attention(&mut b, &inputs, x, hidden, &attention)?;
        (_, x) = layer.add_norm(&mut b, "attn_output_norm", [y, x], hidden, Biases::Required)?;
        b.set_scope(format!("layers.{index}.feed_forward"));
        let y = layer.linear(&mut b, "ffn_up", x, [inner, hidden], config.biases, config.activation)?;
        let y = layer.linear(&mut b, "ffn_down", y, [hidden, inner], config.biases, Activation::None)?;
        (_, x) = layer.add_norm(&mut b, "layer_output_norm", [y, x], hidden, Biases::Required)?;
    }
    inputs.finish(b, x, &graph.output)
}
