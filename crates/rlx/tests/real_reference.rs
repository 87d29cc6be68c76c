//! Real models against other implementations: the first greedy tokens of llama.cpp, and those of a reference in f32.
//!
//! Needs the models that `scripts/fetch-test-models` fetches; `RLX_TEST_MODELS` names their folder.
#![cfg(feature = "cpu")]
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;

use std::path::Path;

use rlx::compile::precision::{Compute, PrecisionPolicy};
use rlx::models::text::EncodeOptions;
use rlx::prelude::*;

/// Where llama.cpp, whose activations are int8, chooses another token, our logits for both are closer than this.
const GAP: f32 = 0.5;
/// So many tokens of each continuation are compared.
const TOKENS: usize = 24;

fn load(file: &str, kv_dtype: DType) -> LanguageModel {
    let folder = std::env::var_os("RLX_TEST_MODELS").expect("RLX_TEST_MODELS is set");
    let mut options = LanguageOptions { context: 512, kv_dtype, ..LanguageOptions::default() };
    options.compile.precision = PrecisionPolicy::new(Compute::F32);
    LanguageModel::load(&common::runtime(), Path::new(&folder).join(file), &options).unwrap()
}

fn argmax(logits: &[f32]) -> usize {
    (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap()
}

#[derive(serde::Deserialize)]
struct Continuation {
    prompt: String,
    prompt_ids: Vec<u32>,
    greedy_ids: Vec<u32>,
    margins: Vec<f32>,
}

impl Continuation {
    /// The logits that each of the greedy tokens is chosen from, those before it being given.
    fn logits(&self, model: &LanguageModel, tokens: usize) -> Vec<Vec<f32>> {
        assert_eq!(model.prompt_ids(&self.prompt).unwrap(), self.prompt_ids, "{:?}", self.prompt);
        let ids: Vec<u32> = self.prompt_ids.iter().chain(&self.greedy_ids[..tokens - 1]).copied().collect();
        let logits = model.logits(&ids).unwrap();
        let rows = logits.chunks(model.shape().vocab_size).skip(self.prompt_ids.len() - 1);
        rows.map(<[f32]>::to_vec).collect()
    }
}

#[derive(serde::Deserialize)]
struct Tokenized {
    text: String,
    ids: Vec<u32>,
}

#[derive(serde::Deserialize)]
struct Model {
    file: String,
    prompts: Vec<Continuation>,
    tokenize: Vec<Tokenized>,
}

#[test]
#[ignore = "needs real models"]
fn greedy_tokens_are_those_of_llama_cpp() {
    let models: Vec<Model> = serde_json::from_str(include_str!("data/llama_cpp_greedy.json")).unwrap();
    assert_eq!(models.len(), 2);
    for Model { file, prompts, tokenize } in models {
        let model = load(&file, DType::F16);
        for case in tokenize {
            let encoding = model.tokenizer().unwrap().encode(&case.text, EncodeOptions::default()).unwrap();
            assert_eq!(encoding.ids, case.ids, "{file}: {:?}", case.text);
        }
        assert_eq!(prompts.len(), 5);
        let (mut same, mut parted) = (0, 0);
        for prompt in prompts {
            for (i, row) in prompt.logits(&model, TOKENS).iter().enumerate() {
                let (ours, theirs) = (argmax(row), prompt.greedy_ids[i] as usize);
                if ours == theirs {
                    same += 1;
                    continue;
                }
                parted += 1;
                let gap = row[ours] - row[theirs];
                println!(
                    "{file}: {:?}, token {i}: {ours} here, {theirs} there; the gap is {gap:.3} here and {:.3} there",
                    prompt.prompt, prompt.margins[i]
                );
                assert!(gap < GAP, "{file}: {:?}, token {i}: {gap}", prompt.prompt);
            }
        }
        println!("{file}: {same} tokens are the same, {parted} differ");
        assert_eq!(same + parted, 5 * TOKENS);
    }
}

#[test]
#[ignore = "needs real models"]
fn greedy_tokens_of_gemma_are_those_of_the_reference_in_f32() {
    let reference: Vec<Continuation> = serde_json::from_str(include_str!("data/gemma3_greedy.json")).unwrap();
    let model = load("gemma3-270m-q4_k_m.gguf", DType::F32);
    for prompt in reference {
        let tokens = prompt.greedy_ids.len();
        let mut compared = 0;
        for (i, row) in prompt.logits(&model, tokens).iter().enumerate() {
            if prompt.margins[i] > 0.01 {
                assert_eq!(argmax(row), prompt.greedy_ids[i] as usize, "{:?}, token {i}", prompt.prompt);
                compared += 1;
            }
        }
        assert!(compared > 50, "{:?}: {compared}", prompt.prompt);
    }
}
