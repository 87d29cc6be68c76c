//! The names of a BERT model's tensors.

use crate::files::NameTable;

/// Canonical names, and those of Hugging Face models. Norms that were converted from TensorFlow have gamma and beta.
pub static NAMES: NameTable = NameTable {
    prefixes: &["", "bert.", "roberta."],
    aliases: &[
        ("token_embd.weight", &["embeddings.word_embeddings.weight"]),
        ("position_embd.weight", &["embeddings.position_embeddings.weight"]),
        ("token_types.weight", &["embeddings.token_type_embeddings.weight"]),
        ("token_embd_norm.weight", &["embeddings.LayerNorm.weight", "embeddings.LayerNorm.gamma"]),
        ("token_embd_norm.bias", &["embeddings.LayerNorm.bias", "embeddings.LayerNorm.beta"]),
        ("blk.{i}.attn_q.weight", &["encoder.layer.{i}.attention.self.query.weight"]),
        ("blk.{i}.attn_q.bias", &["encoder.layer.{i}.attention.self.query.bias"]),
        ("blk.{i}.attn_k.weight", &["encoder.layer.{i}.attention.self.key.weight"]),
        ("blk.{i}.attn_k.bias", &["encoder.layer.{i}.attention.self.key.bias"]),
        ("blk.{i}.attn_v.weight", &["encoder.layer.{i}.attention.self.value.weight"]),
        ("blk.{i}.attn_v.bias", &["encoder.layer.{i}.attention.self.value.bias"]),
        ("blk.{i}.attn_output.weight", &["encoder.layer.{i}.attention.output.dense.weight"]),
        ("blk.{i}.attn_output.bias", &["encoder.layer.{i}.attention.output.dense.bias"]),
        (
            "blk.{i}.attn_output_norm.weight",
            &[
                "encoder.layer.{i}.attention.output.LayerNorm.weight",
                "encoder.layer.{i}.attention.output.LayerNorm.gamma",
            ],
        ),
        (
            "blk.{i}.attn_output_norm.bias",
            &[
                "encoder.layer.{i}.attention.output.LayerNorm.bias",
                "encoder.layer.{i}.attention.output.LayerNorm.beta",
            ],
        ),
        ("blk.{i}.ffn_up.weight", &["encoder.layer.{i}.intermediate.dense.weight"]),
        ("blk.{i}.ffn_up.bias", &["encoder.layer.{i}.intermediate.dense.bias"]),
        ("blk.{i}.ffn_down.weight", &["encoder.layer.{i}.output.dense.weight"]),
        ("blk.{i}.ffn_down.bias", &["encoder.layer.{i}.output.dense.bias"]),
        (
            "blk.{i}.layer_output_norm.weight",
            &["encoder.layer.{i}.output.LayerNorm.weight", "encoder.layer.{i}.output.LayerNorm.gamma"],
        ),
        (
            "blk.{i}.layer_output_norm.bias",
            &["encoder.layer.{i}.output.LayerNorm.bias", "encoder.layer.{i}.output.LayerNorm.beta"],
        ),
    ],
};
