//! The raw network of every decoder on dense inputs and through the cache, from both layouts.
#![allow(clippy::unwrap_used)]

#[path = "common/models.rs"]
mod models;

use std::path::{Path, PathBuf};

use models::{Folder, distance, fixture, runtime, tensor};
use rlx_ir::{DType, ErrorKind};
use rlx_models::convert::{QuantizeOptions, quantize};
use rlx_models::files::ModelFiles;
use rlx_models::forward::{ForwardInput, forward};
use rlx_models::language::{LanguageModel, LanguageOptions, Request, Wanted};
use rlx_models::options::LoadOptions;
use rlx_runtime::pages::Sequence;

const DECODERS: [&str; 7] =
    ["llama", "llama3_rope_scaling", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma3_text"];
const TOLERANCE: f32 = 2e-4;

/// The expected values of a fixture.
struct Expected {
    path: PathBuf,
    ids: Vec<i64>,
    logits: Vec<f32>,
    vocab_size: usize,
}

impl Expected {
    fn of(name: &str) -> Self {
        let path = fixture(name).join("expected.safetensors");
        let ids = tensor(&path, "input_ids").to_i64().unwrap();
        let logits = tensor(&path, "logits").to_f32().unwrap();
        let vocab_size = logits.len() / ids.len();
        Self { path, ids, logits, vocab_size }
    }

    /// Logits of the same text twice: padded on the left by an id that no model has, and on the right. Returns the largest
    /// difference.
    fn whole(&self, files: &ModelFiles) -> f32 {
        let (len, vocab_size) = (self.ids.len(), self.vocab_size);
        let padding = [-1i64; 2];
        let padded: Vec<i64> = [&padding[..], &self.ids, &self.ids, &padding].concat();
        let mask = padded.iter().map(|id| *id >= 0).collect();
        let input = ForwardInput::new(padded, Some(mask), 2, len + 2).unwrap();
        let output = forward(&runtime(), files, &LoadOptions::default(), &input).unwrap();
        assert_eq!((output.name, output.shape), ("logits", [2, len + 2, vocab_size]));
        let (left, right) = output.values.split_at((len + 2) * vocab_size);
        let (before, text) = left.split_at(2 * vocab_size);
        let (same, after) = right.split_at(len * vocab_size);
        assert!(before.iter().chain(after).all(|v| *v == 0.0));
        distance(text, &self.logits).max(distance(same, &self.logits))
    }

    /// The greedy continuation, token by token. Returns the largest difference of its logits.
    fn step_by_step(&self, files: &ModelFiles) -> f32 {
        let options = LanguageOptions { context: 128, kv_dtype: DType::F32, ..LanguageOptions::default() };
        let model = LanguageModel::load_files(&runtime(), files.clone(), &options, &|_, _| {}).unwrap();
        let greedy = tensor(&self.path, "greedy_ids").to_i64().unwrap();
        let logits = tensor(&self.path, "greedy_logits").to_f32().unwrap();
        let mut session = model.session(128).unwrap();
        let mut sequence = Sequence::default();
        let mut tokens: Vec<u32> = self.ids.iter().map(|id| *id as u32).collect();
        let mut worst = 0f32;
        for (&id, expected) in greedy.iter().zip(logits.chunks(self.vocab_size)) {
            let request = Request { sequence: &mut sequence, tokens: &tokens, logits: Wanted::Last };
            let found = session.step_one(request).unwrap();
            worst = worst.max(distance(found, expected));
            let best = (0..found.len()).max_by(|&a, &b| found[a].total_cmp(&found[b]).then(b.cmp(&a)));
            assert_eq!(best, Some(id as usize));
            tokens = vec![id as u32];
        }
        worst
    }
}

fn check(name: &str, layout: &str, path: &Path) {
    let expected = Expected::of(name);
    let files = ModelFiles::open(path).unwrap();
    let (whole, steps) = (expected.whole(&files), expected.step_by_step(&files));
    println!(
        "{name}, {layout}: logits differ by {whole:.1e}, those of the greedy continuation by {steps:.1e}"
    );
    assert!(whole.max(steps) < TOLERANCE, "{name}, {layout}: {whole}, {steps}");
}

#[test]
fn safetensors_give_the_logits_of_the_reference() {
    for name in DECODERS {
        check(name, "safetensors", &fixture(name));
    }
}

#[test]
fn converted_to_gguf_they_give_the_same() {
    for name in DECODERS {
        let folder = Folder::new();
        let path = folder.0.join("f32.gguf");
        let report =
            quantize(&fixture(name), &path, &QuantizeOptions::new(DType::F32), &|_, _, _| {}).unwrap();
        assert!(report.fallbacks.is_empty() && report.skipped.is_empty(), "{name}: {report:?}");
        assert!(report.notes.iter().any(|note| note.contains("tokenizer.json")), "{name}: {report:?}");
        check(name, "gguf", &path);
    }
}

#[test]
fn ids_beyond_the_vocabulary_are_named() {
    let files = ModelFiles::open(&fixture("llama")).unwrap();
    let beyond = ForwardInput::new(vec![314], None, 1, 1).unwrap();
    let e = forward(&runtime(), &files, &LoadOptions::default(), &beyond).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("input_ids[0, 0]"), "{e}");
}
