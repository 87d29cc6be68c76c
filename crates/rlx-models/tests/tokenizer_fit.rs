//! Tokenizers with more or fewer tokens than the network has rows.
#![allow(clippy::unwrap_used)]

#[path = "common/models.rs"]
mod models;

use std::ops::ControlFlow;

use models::{Folder, fixture, runtime};
use rlx_ir::ErrorKind;
use rlx_models::embedding::{EmbeddingModel, EmbeddingOptions};
use rlx_models::files::ModelFiles;
use rlx_models::language::{GenerateOptions, Generation, LanguageModel, LanguageOptions};
use rlx_models::sampling::SamplingParams;
use serde_json::{Map, Value, json};

/// A `tokenizer.json` that has the tokens `t0`, `t1`, ... at `ids`, and `<img>` as an added one.
fn tokenizer(ids: impl IntoIterator<Item = usize>, with_added: bool) -> String {
    let mut vocab: Map<String, Value> = ids.into_iter().map(|id| (format!("t{id}"), id.into())).collect();
    vocab.remove("t0");
    vocab.insert("<unk>".into(), 0.into());
    let added = json!({"id": 0, "content": "<img>", "single_word": false, "lstrip": false, "rstrip": false,
                       "normalized": false, "special": true});
    json!({
        "added_tokens": if with_added { vec![added] } else { vec![] },
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
    })
    .to_string()
}

/// The Llama fixture with a tokenizer, and how many rows it has.
fn llama(tokenizer: impl FnOnce(usize) -> String) -> (LanguageModel, usize, Folder) {
    let folder = Folder::new()
        .copy(&fixture("llama").join("config.json"))
        .copy(&fixture("llama").join("model.safetensors"));
    let files = ModelFiles::open(&folder.0).unwrap();
    let model =
        LanguageModel::load_files(&runtime(), files, &LanguageOptions::default(), &|_, _| {}).unwrap();
    let rows = model.shape().vocab_size;
    let folder = folder.file("tokenizer.json", &tokenizer(rows));
    (model, rows, folder)
}

/// Thirty tokens, drawn as evenly as it goes.
fn generate(model: &LanguageModel, prompt: &str) -> rlx_models::Result<Generation> {
    let sampling = SamplingParams::default().temperature(100.0).top_k(0).top_p(1.0).min_p(0.0).seed(7);
    let options = GenerateOptions { max_tokens: 30, sampling, ..GenerateOptions::default() };
    model.generate(prompt, &options, |_| ControlFlow::Continue(()))
}

#[test]
fn a_token_of_ordinary_text_without_a_row_is_an_error_of_loading() {
    let (model, rows, _folder) = llama(|rows| tokenizer(0..rows + 50, false));
    let e = model.tokenizer().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidFile);
    assert!(e.message().contains(&format!("\"t{rows}\" ({rows})")), "{e}");
    assert!(e.message().contains(&format!("{rows} tokens only")), "{e}");
    assert_eq!(generate(&model, "t1").unwrap_err().kind(), ErrorKind::InvalidFile);
}

#[test]
fn an_added_token_without_a_row_is_refused_where_it_occurs() {
    let (model, rows, _folder) = llama(|rows| tokenizer(0..rows, true));
    assert_eq!(model.tokenizer().unwrap().vocab_size(), rows + 1);
    assert!(generate(&model, "t1 t2").is_ok());
    let e = generate(&model, "t1 <img> t2").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidFile);
    assert!(e.message().contains(&format!("\"<img>\" ({rows})")), "{e}");
}

#[test]
fn ids_that_have_no_token_are_not_sampled() {
    for ids in [(0..100).collect::<Vec<_>>(), (0..50).chain(200..250).collect()] {
        let (model, rows, _folder) = llama(|_| tokenizer(ids.iter().copied(), false));
        assert!(ids.len() < rows);
        let generation = generate(&model, "t1 t2").unwrap();
        assert!(!generation.token_ids.is_empty());
        for &id in &generation.token_ids {
            assert!(ids.contains(&(id as usize)), "{id} was sampled");
        }
        let words = generation.text.matches('t').count() + generation.text.matches("<unk>").count();
        assert_eq!(words, generation.token_ids.len(), "{:?}", generation.text);
        // Ids alone need no tokenizer, and know of no gaps.
        let sampling = SamplingParams::greedy().logit_bias(rows as u32 - 1, 1e9);
        let options = GenerateOptions { max_tokens: 1, sampling, ..GenerateOptions::default() };
        let by_ids = model.generate_ids(&[1], &options, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(by_ids.token_ids, [rows as u32 - 1]);
    }
}

#[test]
fn an_embedding_model_needs_a_row_for_each_token_of_ordinary_text() {
    let load = |ids: usize, added| {
        let folder = Folder::bert();
        std::fs::write(folder.0.join("tokenizer.json"), tokenizer(0..ids, added)).unwrap();
        let files = ModelFiles::open(&folder.0).unwrap();
        EmbeddingModel::from_files(&runtime(), &files, &EmbeddingOptions::default())
    };
    let rows = {
        let config = std::fs::read(fixture("bert").join("config.json")).unwrap();
        let config: Value = serde_json::from_slice(&config).unwrap();
        config["vocab_size"].as_u64().unwrap() as usize
    };
    let e = load(rows + 1, false).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidFile && e.message().contains(&format!("t{rows}")), "{e}");
    assert!(load(rows - 20, false).unwrap().embed(["t1 t2"]).is_ok());
    let with_added = load(rows, true).unwrap();
    let e = with_added.embed(["t1", "t1 <img>"]).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidFile && e.message().starts_with("text 1: "), "{e}");
    assert!(e.message().contains("<img>"), "{e}");
}
