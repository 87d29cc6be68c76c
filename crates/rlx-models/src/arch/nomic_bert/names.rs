//! The names of a NomicBERT model's tensors.

use crate::files::NameTable;

/// Canonical names, those of the models on the hub, and those of transformers' own modules.
pub static NAMES: NameTable = NameTable {
    prefixes: &["", "bert.", "nomic_bert."],
    aliases: &[
        ("token_embd.weight", &["embeddings.word_embeddings.weight"]),
        ("token_types.weight", &["embeddings.token_type_embeddings.weight"]),
        ("token_embd_norm.weight", &["emb_ln.weight", "embeddings.LayerNorm.weight"]),
        ("token_embd_norm.bias", &["emb_ln.bias", "embeddings.LayerNorm.bias"]),
        ("blk.{i}.attn_qkv.weight", &["encoder.layers.{i}.attn.Wqkv.weight"]),
        ("blk.{i}.attn_qkv.bias", &["encoder.layers.{i}.attn.Wqkv.bias"]),
        ("blk.{i}.attn_q.weight", &["layers.{i}.self_attn.q_proj.weight"]),
        ("blk.{i}.attn_k.weight", &["layers.{i}.self_attn.k_proj.weight"]),
        ("blk.{i}.attn_v.weight", &["layers.{i}.self_attn.v_proj.weight"]),
        (
            "blk.{i}.attn_output.weight",
            &["encoder.layers.{i}.attn.out_proj.weight", "layers.{i}.self_attn.o_proj.weight"],
        ),
        ("blk.{i}.attn_output.bias", &["encoder.layers.{i}.attn.out_proj.bias"]),
        (
            "blk.{i}.attn_output_norm.weight",
            &["encoder.layers.{i}.norm1.weight", "layers.{i}.post_attention_layernorm.weight"],
        ),
        (
            "blk.{i}.attn_output_norm.bias",
            &["encoder.layers.{i}.norm1.bias", "layers.{i}.post_attention_layernorm.bias"],
        ),
        ("blk.{i}.ffn_up.weight", &["encoder.layers.{i}.mlp.fc11.weight", "layers.{i}.mlp.up_proj.weight"]),
        ("blk.{i}.ffn_up.bias", &["encoder.layers.{i}.mlp.fc11.bias"]),
        (
            "blk.{i}.ffn_gate.weight",
            &["encoder.layers.{i}.mlp.fc12.weight", "layers.{i}.mlp.gate_proj.weight"],
        ),
        ("blk.{i}.ffn_gate.bias", &["encoder.layers.{i}.mlp.fc12.bias"]),
        (
            "blk.{i}.ffn_down.weight",
            &["encoder.layers.{i}.mlp.fc2.weight", "layers.{i}.mlp.down_proj.weight"],
        ),
        ("blk.{i}.ffn_down.bias", &["encoder.layers.{i}.mlp.fc2.bias"]),
        (
            "blk.{i}.layer_output_norm.weight",
            &["encoder.layers.{i}.norm2.weight", "layers.{i}.post_mlp_layernorm.weight"],
        ),
        (
            "blk.{i}.layer_output_norm.bias",
            &["encoder.layers.{i}.norm2.bias", "layers.{i}.post_mlp_layernorm.bias"],
        ),
    ],
};
