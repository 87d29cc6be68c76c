//! Real models. `RLX_TEST_MODELS` names the folder that `scripts/fetch-test-models` fills.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};

use common::{Folder, Run, cosine, distance, rlx, rlx_with_stdin, vector};
use rlx::compile::precision::{Compute, PrecisionPolicy};
use rlx::ir::Tick;
use rlx::models::language::{Request, Wanted};
use rlx::prelude::*;
use rlx::runtime::pages::Sequence;
use serde_json::Value;

fn model(name: &str) -> String {
    let folder = std::env::var_os("RLX_TEST_MODELS").expect("RLX_TEST_MODELS names the folder of the models");
    PathBuf::from(folder).join(name).display().to_string()
}

fn smollm2() -> String {
    model("SmolLM2-135M-Instruct.Q4_1.gguf")
}

struct Reference {
    text: String,
    embedding: Vec<f32>,
}

fn references() -> Vec<Reference> {
    let rows: Vec<Value> = serde_json::from_str(include_str!("fixtures/minilm_embeddings.json")).unwrap();
    rows.iter()
        .map(|row| Reference { text: row["text"].as_str().unwrap().to_owned(), embedding: vector(row) })
        .collect()
}

/// Embeds texts through JSON lines on stdin.
fn embed(args: &[&str], texts: &[&str]) -> Vec<Vec<f32>> {
    let lines: String = texts.iter().map(|t| serde_json::json!({"text": t}).to_string() + "\n").collect();
    let args = ["embed", "--input", "-"].iter().chain(args);
    rlx_with_stdin(args, lines.as_bytes()).ok().json_lines().iter().map(vector).collect()
}

fn least_cosine(args: &[&str]) -> f64 {
    let references = references();
    let texts: Vec<&str> = references.iter().map(|r| r.text.as_str()).collect();
    let vectors = embed(args, &texts);
    assert_eq!(vectors.len(), references.len());
    let cosines = references.iter().zip(&vectors).map(|(r, v)| cosine(&r.embedding, v));
    cosines.fold(1.0, f64::min)
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn minilm_in_f32_is_the_reference() {
    let least = least_cosine(&["--model", &model("minilm"), "--dtype", "f32"]);
    println!("least cosine in f32: {least:.7}");
    assert!(least >= 0.99999, "{least}");
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn the_shipped_model_is_near_the_reference() {
    let least = least_cosine(&[]);
    println!("least cosine of the shipped model: {least:.7}");
    assert!(least >= 0.999, "{least}");
}

/// The card beside the model says how it was made; the converter must still make it so.
#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn the_shipped_model_is_what_quantize_makes_of_its_original() {
    let folder = Folder::new();
    // The folder's name becomes the model's.
    let original = folder.path().join("all-MiniLM-L6-v2");
    copy_folder(Path::new(&model("minilm")), &original);
    let made = folder.path().join("made.gguf");
    rlx([Path::new("quantize"), &original, &made, Path::new("--type"), Path::new("q8_0")]).ok();
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../rlx-models/models/all-MiniLM-L6-v2-q8_0.gguf");
    let (made, shipped) = (std::fs::read(made).unwrap(), std::fs::read(shipped).unwrap());
    assert!(made == shipped, "{} and {} bytes, which differ", made.len(), shipped.len());
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn a_text_has_the_same_vector_alone_and_in_any_batch() {
    let references = references();
    let texts: Vec<&str> = references.iter().map(|r| r.text.as_str()).collect();
    let minilm = model("minilm");
    for (args, tolerance) in [
        (&["--model", minilm.as_str(), "--dtype", "f32"][..], 1e-5),
        // Products with quantised weights and int8 activations are exact within a block, and summed in one order.
        (&["--dtype", "q8_0"], 0.0),
    ] {
        let together = embed(args, &texts);
        let small = embed(&[args, &["--batch-tokens", "64", "--threads", "1"]].concat(), &texts);
        for (i, text) in texts.iter().enumerate() {
            let alone = embed(args, &[text]);
            for other in [&alone[0], &small[i]] {
                let off = distance(&together[i], other);
                assert!(off <= tolerance, "{args:?}, {text:?}: off by {off}");
            }
        }
    }
}

fn generate(args: &[&str]) -> Run {
    let model = smollm2();
    rlx(["generate", "--model", &model].iter().chain(args)).ok()
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn smollm2_writes_sensible_english() {
    let prompt = "The capital of France is";
    let report = generate(&["-p", prompt, "-n", "24", "--temp", "0", "--format", "json"]).json();
    let text = report["text"].as_str().unwrap();
    println!("{prompt}{text}");
    assert!(text.contains("Paris"), "{text}");
    let streamed = generate(&["-p", prompt, "-n", "24", "--temp", "0"]);
    assert_eq!(streamed.text(), format!("{text}\n"));
    let story = generate(&["-p", "Once upon a time, there was a little", "-n", "64", "--temp", "0"]);
    println!("{}", story.text());
    let words: Vec<&str> = story.text().split_whitespace().collect();
    let common = ["the", "a", "and", "to", "was", "who", "in", "of", "her", "his", "she", "he", "with"];
    let known = words.iter().filter(|w| common.contains(&w.to_lowercase().as_str())).count();
    assert!(words.len() > 20 && known * 6 > words.len(), "{}", story.text());
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn a_seed_repeats_exactly() {
    let with = |seed: &str| {
        let args = ["-p", "My favourite animal is", "-n", "48", "--seed", seed, "--format", "json"];
        generate(&args).json()["token_ids"].clone()
    };
    assert_eq!(with("7"), with("7"));
    assert_ne!(with("7"), with("8"));
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn the_cache_gives_what_recomputing_gives() {
    const TOKENS: usize = 200;
    for compute in [Compute::Int8, Compute::F32] {
        let runtime = Runtime::detect().unwrap();
        let mut options = LanguageOptions { context: 512, ..LanguageOptions::default() };
        options.compile.precision = PrecisionPolicy::new(compute);
        let model = LanguageModel::load(&runtime, smollm2(), &options).unwrap();
        let mut ids = model.prompt_ids("The history of the steam engine begins").unwrap();
        let prompt = ids.len();
        let mut cache = model.session(512).unwrap();
        let mut again = model.session(512).unwrap();
        let mut sequence = Sequence::default();
        let mut new = ids.len();
        for i in 0..TOKENS {
            let tokens = &ids[ids.len() - new..];
            let step = Request { sequence: &mut sequence, tokens, logits: Wanted::Last };
            let logits = cache.step_one(step).unwrap().to_vec();
            if i % 20 == 0 || i + 1 == TOKENS {
                let mut whole = Sequence::default();
                let step = Request { sequence: &mut whole, tokens: &ids, logits: Wanted::Last };
                let recomputed = again.step_one(step).unwrap();
                match compute {
                    Compute::Int8 => assert_eq!(logits, recomputed, "token {i}"),
                    _ => assert!(distance(&logits, recomputed) <= 1e-3, "token {i}"),
                }
                again.truncate(&mut whole, 0).unwrap();
            }
            let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
            ids.push(best as u32);
            new = 1;
        }
        assert_eq!(ids.len(), prompt + TOKENS);
    }
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn generating_takes_little_more_memory_than_the_file_has() {
    let file_bytes = std::fs::metadata(smollm2()).unwrap().len() as f64;
    let run = generate(&["-v", "-p", "Once upon a time", "-c", "1024", "-n", "64", "--temp", "0"]);
    let peak = run.stderr.lines().find_map(|l| l.strip_prefix("info: peak memory bytes="));
    let peak: f64 = peak.unwrap_or_else(|| panic!("{}", run.stderr)).parse().unwrap();
    println!("peak memory: {:.2} times the file", peak / file_bytes);
    if cfg!(target_os = "linux") {
        assert!(
            peak > 0.0 && peak < 1.6 * file_bytes,
            "{peak} bytes, {:.2} times the file",
            peak / file_bytes
        );
    }
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn a_cold_start_is_shown() {
    let times: Vec<f64> = (0..6)
        .map(|_| {
            let start = Tick::now();
            assert_eq!(rlx(["embed", "hello world"]).ok().json_lines().len(), 1);
            start.elapsed_ms()
        })
        .collect();
    let best = times.iter().copied().fold(f64::INFINITY, f64::min);
    println!("from the start of the process to a vector: {best:.1} ms (best of {})", times.len());
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn awkward_texts_have_the_ids_of_the_reference() {
    use rlx::models::text::{EncodeOptions, GgufVocab, Tokenizer};
    let awkward = std::fs::read(common::tests_of("rlx-models", "data/awkward.json")).unwrap();
    let awkward: Value = serde_json::from_slice(&awkward).unwrap();
    let texts = awkward["texts"].as_array().unwrap();
    for (key, file) in [("smollm2", smollm2()), ("gemma3", model("gemma3-270m-q4_k_m.gguf"))] {
        let gguf = rlx::gguf::Gguf::open(file).unwrap();
        let tokenizer = Tokenizer::from_gguf(GgufVocab::from_metadata(gguf.metadata()).unwrap()).unwrap();
        let expected = awkward[key].as_array().unwrap();
        assert_eq!(texts.len(), expected.len());
        for (text, expected) in texts.iter().zip(expected) {
            for (parse_special, ids) in [false, true].into_iter().zip(expected.as_array().unwrap()) {
                let options = EncodeOptions { add_special: false, parse_special };
                let found = tokenizer.encode(text.as_str().unwrap(), options).unwrap().ids;
                assert_eq!(
                    serde_json::json!(found),
                    *ids,
                    "{key}: {text}, special tokens parsed: {parse_special}"
                );
            }
        }
        println!("{key}: {} texts", texts.len());
    }
}

#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn smollm2_keeps_to_a_conversation() {
    let args = ["chat", "--model", &smollm2(), "--temp", "0", "-n", "48"];
    let lines = "What is the capital of France?\nWhich city did you name?\n";
    let text = rlx_with_stdin(args.iter().copied(), lines.as_bytes()).ok();
    println!("{}", text.text());
    // The second question does not name it.
    assert!(text.text().lines().count() >= 2 && text.text().matches("Paris").count() >= 2, "{}", text.text());
    let turns =
        rlx_with_stdin(args.iter().copied().chain(["--format", "json"]), lines.as_bytes()).ok().json_lines();
    assert_eq!(turns.len(), 2);
    assert!(turns[1]["cached_tokens"].as_u64().unwrap() >= turns[0]["prompt_tokens"].as_u64().unwrap() - 1);
}
