//! The tensor names that most decoders share.

use crate::files::NameTable;

/// Canonical names (those of GGUF) and what Hugging Face models call the same tensors.
pub static NAMES: NameTable = NameTable {
    prefixes: &["model.", ""],
    aliases: &[
        ("token_embd.weight", &["embed_tokens.weight"]),
        ("output_norm.weight", &["norm.weight"]),
        ("output.weight", &["lm_head.weight"]),
        ("blk.{i}.attn_norm.weight", &["layers.{i}.input_layernorm.weight"]),
        ("blk.{i}.attn_q.weight", &["layers.{i}.self_attn.q_proj.weight"]),
        ("blk.{i}.attn_k.weight", &["layers.{i}.self_attn.k_proj.weight"]),
        ("blk.{i}.attn_v.weight", &["layers.{i}.self_attn.v_proj.weight"]),
        ("blk.{i}.attn_output.weight", &["layers.{i}.self_attn.o_proj.weight"]),
        ("blk.{i}.attn_q.bias", &["layers.{i}.self_attn.q_proj.bias"]),
        ("blk.{i}.attn_k.bias", &["layers.{i}.self_attn.k_proj.bias"]),
        ("blk.{i}.attn_v.bias", &["layers.{i}.self_attn.v_proj.bias"]),
        ("blk.{i}.attn_output.bias", &["layers.{i}.self_attn.o_proj.bias"]),
        ("blk.{i}.attn_q_norm.weight", &["layers.{i}.self_attn.q_norm.weight"]),
        ("blk.{i}.attn_k_norm.weight", &["layers.{i}.self_attn.k_norm.weight"]),
        ("blk.{i}.ffn_norm.weight", &["layers.{i}.post_attention_layernorm.weight"]),
        ("blk.{i}.ffn_gate.weight", &["layers.{i}.mlp.gate_proj.weight"]),
        ("blk.{i}.ffn_up.weight", &["layers.{i}.mlp.up_proj.weight"]),
        ("blk.{i}.ffn_down.weight", &["layers.{i}.mlp.down_proj.weight"]),
        ("blk.{i}.ffn_gate_inp.weight", &["layers.{i}.mlp.gate.weight"]),
        ("blk.{i}.ffn_gate_exps.weight", &["layers.{i}.mlp.experts.{e}.gate_proj.weight"]),
        ("blk.{i}.ffn_up_exps.weight", &["layers.{i}.mlp.experts.{e}.up_proj.weight"]),
        ("blk.{i}.ffn_down_exps.weight", &["layers.{i}.mlp.experts.{e}.down_proj.weight"]),
        ("blk.{i}.ffn_gate.bias", &["layers.{i}.mlp.gate_proj.bias"]),
        ("blk.{i}.ffn_up.bias", &["layers.{i}.mlp.up_proj.bias"]),
        ("blk.{i}.ffn_down.bias", &["layers.{i}.mlp.down_proj.bias"]),
    ],
};
