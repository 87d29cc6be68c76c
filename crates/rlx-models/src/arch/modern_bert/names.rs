//! The names of a ModernBERT model's tensors.

use crate::files::NameTable;

/// Canonical names, and those of Hugging Face models.
pub static NAMES: NameTable = NameTable {
    prefixes: &["", "model."],
    aliases: &[
        ("token_embd.weight", &["embeddings.tok_embeddings.weight"]),
        ("token_embd_norm.weight", &["embeddings.norm.weight"]),
        ("token_embd_norm.bias", &["embeddings.norm.bias"]),
        ("output_norm.weight", &["final_norm.weight"]),
        ("output_norm.bias", &["final_norm.bias"]),
        ("blk.{i}.attn_norm.weight", &["layers.{i}.attn_norm.weight"]),
        ("blk.{i}.attn_norm.bias", &["layers.{i}.attn_norm.bias"]),
        ("blk.{i}.attn_qkv.weight", &["layers.{i}.attn.Wqkv.weight"]),
        ("blk.{i}.attn_qkv.bias", &["layers.{i}.attn.Wqkv.bias"]),
        ("blk.{i}.attn_output.weight", &["layers.{i}.attn.Wo.weight"]),
        ("blk.{i}.attn_output.bias", &["layers.{i}.attn.Wo.bias"]),
        ("blk.{i}.ffn_norm.weight", &["layers.{i}.mlp_norm.weight"]),
        ("blk.{i}.ffn_norm.bias", &["layers.{i}.mlp_norm.bias"]),
        // Gate and up as one matrix: the gate's rows come first.
        ("blk.{i}.ffn_up.weight", &["layers.{i}.mlp.Wi.weight"]),
        ("blk.{i}.ffn_up.bias", &["layers.{i}.mlp.Wi.bias"]),
        ("blk.{i}.ffn_down.weight", &["layers.{i}.mlp.Wo.weight"]),
        ("blk.{i}.ffn_down.bias", &["layers.{i}.mlp.Wo.bias"]),
    ],
};
