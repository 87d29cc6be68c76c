//! Vectors of texts from the networks of decoders, against the reference implementation, in both layouts.
#![allow(clippy::unwrap_used)]

#[path = "common/models.rs"]
mod models;

use std::path::{Path, PathBuf};

use models::{Folder, cosine, distance, fixture, runtime, tensor, tests};
use rlx_gguf::Gguf;
use rlx_ir::{DType, ErrorKind};
use rlx_models::arch::weight_type::WeightType;
use rlx_models::arch::{EmbeddingHead, EncoderGraph, EncoderOutput};
use rlx_models::convert::{QuantizeOptions, quantize};
use rlx_models::encoder::{Encoder, EncoderSession, Packed};
use rlx_models::files::ModelFiles;
use rlx_models::forward::{ForwardInput, forward};
use rlx_models::language::LanguageOptions;
use rlx_models::options::LoadOptions;
use rlx_models::sentence_transformers::{EmbeddingConfig, PoolingMode};
use rlx_models::{EmbeddingModel, EmbeddingOptions, LanguageModel};

/// What float32 arithmetic reaches, absolute.
const TOLERANCE: f32 = 2e-4;

struct Reference {
    path: PathBuf,
    /// The tokens of each row that count.
    rows: Vec<Vec<i32>>,
}

impl Reference {
    fn new(path: PathBuf) -> Self {
        let ids = tensor(&path, "input_ids");
        let columns = ids.shape()[1];
        let ids = ids.to_i64().unwrap();
        let mask = tensor(&path, "attention_mask").to_i64().unwrap();
        let rows = ids.chunks(columns).zip(mask.chunks(columns)).map(|(ids, mask)| {
            ids.iter().zip(mask).filter(|(_, m)| **m != 0).map(|(id, _)| *id as i32).collect()
        });
        Self { rows: rows.collect(), path }
    }

    fn values(&self, name: &str) -> Vec<f32> {
        tensor(&self.path, name).to_f32().unwrap()
    }

    /// Vectors pooled by `mode`, `at_once` rows at a time, against those of the reference.
    #[track_caller]
    fn check_pooled(&self, model: &Path, mode: PoolingMode, name: &str) {
        let encoder = Encoder::new(&ModelFiles::open(model).unwrap()).unwrap();
        let config = EmbeddingConfig {
            pooling: vec![mode],
            pool_prompt: true,
            normalize: true,
            ..EmbeddingConfig::default()
        };
        let graph = EncoderGraph {
            max_tokens: 64,
            max_sequences: 8,
            weights: WeightType::AsStored,
            output: EncoderOutput::Pooled(EmbeddingHead { config, dims: None }),
        };
        let graph = encoder.graph(&graph).unwrap();
        let session =
            EncoderSession::new(&runtime(), &graph, encoder.weights(), &LoadOptions::default()).unwrap();
        let expected = self.values(name);
        let width = encoder.hidden_size();
        let mut both = Vec::new();
        for at_once in [1, self.rows.len()] {
            let mut got = Vec::new();
            for rows in self.rows.chunks(at_once) {
                let mut packed = Packed::default();
                rows.iter().for_each(|ids| packed.push(ids.iter().copied().zip(0..), 0));
                got.extend(session.run(&packed, |cx| Ok(cx.output::<f32>(0)?.to_vec())).unwrap());
            }
            for (got, expected) in got.chunks(width).zip(expected.chunks(width)) {
                assert!(cosine(got, expected) > 0.99999, "{}: {}", model.display(), cosine(got, expected));
            }
            assert!(distance(&got, &expected) < TOLERANCE, "{}", distance(&got, &expected));
            both.push(got);
        }
        assert!(distance(&both[0], &both[1]) < 1e-5);
    }
}

fn gguf(fixture_name: &str, folder: &Folder) -> PathBuf {
    let path = folder.0.join(format!("{fixture_name}.gguf"));
    quantize(&fixture(fixture_name), &path, &QuantizeOptions::new(DType::F32), &|_, _, _| {}).unwrap();
    path
}

#[test]
fn qwen3_gives_the_vector_of_its_last_token() {
    let folder = Folder::new();
    let reference = Reference::new(tests("data/qwen3_embedding.safetensors"));
    for model in [fixture("qwen3"), gguf("qwen3", &folder)] {
        reference.check_pooled(&model, PoolingMode::LastToken, "last_pooled_normalized");
        reference.check_pooled(&model, PoolingMode::Mean, "mean_pooled_normalized");
    }
}

#[test]
fn a_gemma_whose_tokens_see_both_ways_is_an_encoder() {
    let folder = Folder::new();
    let from = fixture("gemma3_embedding");
    let reference = Reference::new(from.join("expected.safetensors"));
    for model in [from.clone(), gguf("gemma3_embedding", &folder)] {
        let files = ModelFiles::open(&model).unwrap();
        assert_eq!(files.architecture(), "gemma-embedding");
        let input = ForwardInput::open(&reference.path).unwrap();
        let output = forward(&runtime(), &files, &LoadOptions::default(), &input).unwrap();
        assert_eq!(output.name, "last_hidden_state");
        let off = distance(&output.values, &reference.values("last_hidden_state"));
        assert!(off < TOLERANCE, "{}: {off}", model.display());
        reference.check_pooled(&model, PoolingMode::Mean, "mean_pooled_normalized");
        let e = LanguageModel::load_files(&runtime(), files, &LanguageOptions::default(), &|_, _| {});
        assert_eq!(e.unwrap_err().kind(), ErrorKind::UnsupportedModel);
    }
    let file = Gguf::open(folder.0.join("gemma3_embedding.gguf")).unwrap();
    let m = file.metadata();
    assert_eq!(m.str("general.architecture").unwrap(), Some("gemma-embedding"));
    assert_eq!(m.u32("gemma-embedding.attention.sliding_window").unwrap(), Some(10));
    // Without modules.json, as sentence-transformers takes such a folder.
    assert_eq!(m.u32("gemma-embedding.pooling_type").unwrap(), Some(1));
    assert_eq!(m.bool("rlx.embedding.normalize").unwrap(), Some(false));
}

#[test]
fn a_language_model_in_gguf_pools_only_where_it_is_asked_to() {
    let from = fixture("qwen3");
    let folder = Folder::new().copy(&from.join("config.json")).copy(&from.join("model.safetensors"));
    std::fs::copy(tests("data/wordpiece_tokenizer.json"), folder.0.join("tokenizer.json")).unwrap();
    let path = folder.0.join("m.gguf");
    quantize(&folder.0, &path, &QuantizeOptions::new(DType::F32), &|_, _, _| {}).unwrap();
    let load = |options: &EmbeddingOptions| EmbeddingModel::load_with(&runtime(), &path, options);
    let e = load(&EmbeddingOptions::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("qwen3.pooling_type"), "{e}");
    let asked = EmbeddingOptions { pooling: Some(PoolingMode::LastToken), ..EmbeddingOptions::default() };
    assert_eq!(load(&asked).unwrap().embed(["a cat"]).unwrap().dim(), 64);
}
