//! The graph of a ModernBERT model.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::{Builder, Graph};

use super::config::ModernBertConfig;
use crate::Result;
use crate::arch::encoder::{AttentionSpec, EncoderGraph, EncoderInputs, Heads, Layer, Rotary, embed_tokens};
use crate::files::NamedWeights;

/// Builds the graph of a model with the tensors `weights`.
pub(super) fn build(
    config: &ModernBertConfig,
    weights: &NamedWeights,
    graph: &EncoderGraph,
) -> Result<Graph> {
    let (hidden, inner) = (config.hidden_size, config.intermediate_size);
    let (types, norm_biases, mlp_biases) = (graph.weights, config.norm_biases, config.mlp_biases);
    let mut b = Builder::new("modern_bert");
    let inputs = EncoderInputs::declare(&mut b, graph, 0)?;

    b.set_scope("embeddings");
    let outside = Layer::new(weights, types, None, config.norm_eps);
    let x = embed_tokens(&mut b, weights, types, &inputs, [config.vocab_size, hidden], None)?;
    let mut x = outside.norm(&mut b, "token_embd_norm", x, hidden, norm_biases)?;

    let global = Rotary::new(&mut b, &config.rope(config.global_rope_theta), "inv_freq")?;
    let local = Rotary::new(&mut b, &config.rope(config.local_rope_theta), "inv_freq_local")?;
    let num_layers = config.local_layers.len();
    let layer_at = |index| Layer::new(weights, types, Some(index), config.norm_eps);
    // The first layer reads the norm of the vectors, and has none of its own unless the file says so.
    let mut normed = match layer_at(0) {
        first if first.has("attn_norm.weight") => first.norm(&mut b, "attn_norm", x, hidden, norm_biases)?,
        _ => x,
    };
    for (index, is_local) in config.local_layers.iter().enumerate() {
        let layer = layer_at(index);
        let attention = AttentionSpec {
            heads: Heads { count: config.num_heads, dim: config.head_dim() },
            rotary: Some(if *is_local { &local } else { &global }),
            mask: if *is_local { Mask::Local { window: config.window } } else { Mask::None },
            biases: config.attention_biases,
        };
        b.set_scope(format!("layers.{index}.attention"));
        let y = layer.attention(&mut b, &inputs, normed, hidden, &attention)?;
        b.set_scope(format!("layers.{index}.feed_forward"));
        (x, normed) = layer.add_norm(&mut b, "ffn_norm", [y, x], hidden, norm_biases)?;
        let y = layer.linear(&mut b, "ffn_up", normed, [2 * inner, hidden], mlp_biases, Activation::None)?;
        let y = b.glu(y, config.activation)?;
        let y = layer.linear(&mut b, "ffn_down", y, [hidden, inner], mlp_biases, Activation::None)?;
        let next = index + 1;
        (x, normed) = if next == num_layers {
            b.set_scope("head");
            outside.add_norm(&mut b, "output_norm", [y, x], hidden, norm_biases)?
        } else {
            b.set_scope(format!("layers.{next}.attention"));
            layer_at(next).add_norm(&mut b, "attn_norm", [y, x], hidden, norm_biases)?
        };
    }
    inputs.finish(b, normed, &graph.output)
}
