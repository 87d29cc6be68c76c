//! The graph of a NomicBERT model.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::{Builder, Graph};

use super::config::NomicBertConfig;
use crate::Result;
use crate::arch::activation::activate;
use crate::arch::encoder::{AttentionSpec, EncoderGraph, EncoderInputs, Heads, Layer, Rotary, embed_tokens};
use crate::arch::llama::Biases;
use crate::files::NamedWeights;

/// Builds the graph of a model with the tensors `weights`.
pub(super) fn build(config: &NomicBertConfig, weights: &NamedWeights, graph: &EncoderGraph) -> Result<Graph> {
    let (hidden, inner) = (config.hidden_size, config.intermediate_size);
    let types = graph.weights;
    let mut b = Builder::new("nomic_bert");
    let inputs = EncoderInputs::declare(&mut b, graph, 0)?;

    b.set_scope("embeddings");
    let sizes = [config.vocab_size, hidden];
    let x = embed_tokens(&mut b, weights, types, &inputs, sizes, config.type_vocab_size)?;
    let outside = Layer::new(weights, types, None, config.layer_norm_eps);
    let mut x = outside.norm(&mut b, "token_embd_norm", x, hidden, Biases::Required)?;

    let rotary = Rotary::new(&mut b, &config.rope(), "inv_freq")?;
    let attention = AttentionSpec {
        heads: Heads { count: config.num_heads, dim: config.head_dim },
        rotary: Some(&rotary),
        mask: Mask::None,
        biases: config.attention_biases,
    };
    for index in 0..config.num_layers {
        let layer = Layer::new(weights, types, Some(index), config.layer_norm_eps);
        b.set_scope(format!("layers.{index}.attention"));
        let y = layer.attention(&mut b, &inputs, x, hidden, &attention)?;
        (_, x) = layer.add_norm(&mut b, "attn_output_norm", [y, x], hidden, Biases::Required)?;
        b.set_scope(format!("layers.{index}.feed_forward"));
        let up_biases = config.up_biases;
        let gate = layer.linear(&mut b, "ffn_gate", x, [inner, hidden], up_biases, Activation::None)?;
        let up = layer.linear(&mut b, "ffn_up", x, [inner, hidden], up_biases, Activation::None)?;
        let gate = activate(&mut b, gate, config.activation)?;
        let y = b.mul(gate, up)?;
        let y = layer.linear(&mut b, "ffn_down", y, [hidden, inner], config.down_biases, Activation::None)?;
        (_, x) = layer.add_norm(&mut b, "layer_output_norm", [y, x], hidden, Biases::Required)?;
    }
    inputs.finish(b, x, &graph.output)
}
