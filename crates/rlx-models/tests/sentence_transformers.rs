//! The vectors of sentence-transformers, from its folders and from what they become in GGUF.
#![allow(clippy::unwrap_used)]

#[path = "common/models.rs"]
mod models;

use models::{Folder, cosine, distance, fixture, runtime, tensor, tests, write_tensors};
use rlx_ir::{DType, Tensor};
use rlx_models::convert::{QuantizeOptions, quantize};
use rlx_models::embedding::Prompt;
use rlx_models::{EmbeddingModel, EmbeddingOptions};
use serde_json::Value;

/// The numbers that the weights of layers after pooling are made of.
fn numbers(shape: &[usize]) -> Tensor {
    let len = shape.iter().product();
    let values: Vec<f32> = (0..len).map(|i: usize| ((i * 37 % 101) as f32 - 50.0) / 80.0).collect();
    Tensor::f32(shape, &values).unwrap()
}

fn folder(case: &Value) -> Folder {
    let from = fixture(case["fixture"].as_str().unwrap());
    let mut folder = Folder::new().copy(&from.join("config.json")).copy(&from.join("model.safetensors"));
    std::fs::copy(tests("data/wordpiece_tokenizer.json"), folder.0.join("tokenizer.json")).unwrap();
    for (name, value) in case["files"].as_object().unwrap() {
        folder = folder.file(name, &value.to_string());
        if name.contains("Dense") {
            let size = |key: &str| value[key].as_u64().unwrap() as usize;
            let (from, to) = (size("in_features"), size("out_features"));
            let mut weights = vec![("linear.weight".to_owned(), numbers(&[to, from]))];
            if value["bias"] == true {
                weights.push(("linear.bias".to_owned(), numbers(&[to])));
            }
            write_tensors(&folder.0.join(name).with_file_name("model.safetensors"), &weights);
        }
    }
    folder
}

#[test]
fn every_kind_of_folder_gives_the_same_vectors_in_both_layouts() {
    let data: Value =
        serde_json::from_slice(&std::fs::read(tests("data/sentence_transformers.json")).unwrap()).unwrap();
    let texts: Vec<&str> = data["texts"].as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
    let cases = data["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 15);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let folder = folder(case);
        let gguf = folder.0.join("m.gguf");
        quantize(&folder.0, &gguf, &QuantizeOptions::new(DType::F32), &|_, _, _| {}).unwrap();
        let options = EmbeddingOptions {
            prompt: case["prompt"].as_str().map_or(Prompt::Default, |name| Prompt::Named(name.into())),
            dims: case["dims"].as_u64().map(|n| n as usize),
            ..EmbeddingOptions::default()
        };
        let expected = tensor(&tests("data/sentence_transformers.safetensors"), name);
        let (width, expected) = (expected.shape()[1], expected.to_f32().unwrap());
        for path in [&folder.0, &gguf] {
            let model = EmbeddingModel::load_with(&runtime(), path, &options).unwrap();
            let got = model.embed(&texts).unwrap();
            assert_eq!(got.dim(), width, "{name}");
            for (i, expected) in expected.chunks(width).enumerate() {
                let (off, cosine) = (distance(&got[i], expected), cosine(&got[i], expected));
                assert!(off < 2e-4 && cosine > 0.99999, "{name}, text {i}: {off}, cosine {cosine}");
            }
        }
    }
}
