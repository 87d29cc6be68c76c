//! The small vocabularies in `tests/data`.
#![allow(clippy::unwrap_used, dead_code)]

use std::path::{Path, PathBuf};

use rlx_models::text::{GgufVocab, TokenType};
use serde_json::Value;

/// A file of `tests/data`.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A parsed file of `tests/data`.
pub fn json(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(data(name)).unwrap()).unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().map(|v| v.iter().map(|s| s.as_str().unwrap().to_owned()).collect()).unwrap_or_default()
}

/// A vocabulary of `tests/data`.
pub fn vocab(name: &str) -> GgufVocab {
    let v = json(name);
    let id = |key: &str| v[key].as_u64().map(|n| n as u32);
    let types = v["token_types"].as_array().unwrap();
    GgufVocab {
        model: v["model"].as_str().unwrap().into(),
        pre: v["pre"].as_str().map(str::to_owned),
        tokens: strings(&v["tokens"]).into_iter().collect(),
        scores: v["scores"]
            .as_array()
            .map(|s| s.iter().map(|n| n.as_f64().unwrap() as f32).collect())
            .unwrap_or_default(),
        token_types: types.iter().map(|t| TokenType::from_gguf(t.as_i64().unwrap())).collect(),
        merges: strings(&v["merges"]).into_iter().collect(),
        bos: id("bos"),
        eos: id("eos"),
        unk: None,
        add_space_prefix: v["add_space_prefix"].as_bool(),
        remove_extra_whitespaces: v["remove_extra_whitespaces"].as_bool(),
        precompiled_charsmap: v["precompiled_charsmap"]
            .as_array()
            .map(|bytes| bytes.iter().map(|b| b.as_u64().unwrap() as u8).collect())
            .unwrap_or_default(),
        ..GgufVocab::default()
    }
}
