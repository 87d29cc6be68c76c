//! The model that ships with the project against sentence-transformers on its original.
#![allow(clippy::unwrap_used)]

#[path = "common/models.rs"]
mod models;

use std::path::Path;

use models::{cosine, runtime};
use rlx_models::EmbeddingModel;
use serde_json::Value;

#[test]
fn the_shipped_model_agrees_with_its_original() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let reference = root.join("../rlx-cli/tests/fixtures/minilm_embeddings.json");
    let reference: Vec<Value> = serde_json::from_slice(&std::fs::read(reference).unwrap()).unwrap();
    let texts: Vec<&str> = reference.iter().map(|r| r["text"].as_str().unwrap()).collect();
    let model = EmbeddingModel::load(&runtime(), root.join("models/all-MiniLM-L6-v2-q8_0.gguf")).unwrap();
    assert_eq!((model.dim(), model.max_seq_length()), (384, 256));
    let vectors = model.embed(&texts).unwrap();
    for ((reference, text), vector) in reference.iter().zip(&texts).zip(vectors.iter()) {
        let wanted = reference["embedding"].as_array().unwrap();
        let wanted: Vec<f32> = wanted.iter().map(|v| v.as_f64().unwrap() as f32).collect();
        let cosine = cosine(vector, &wanted);
        assert!(cosine > 0.999, "{cosine} for {text:?}");
    }
}
