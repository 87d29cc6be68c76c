//! `rlx generate` and `rlx forward` on tiny models with known results.
#![allow(clippy::unwrap_used)]

mod common;

use common::models::{changed_copy, llama_gguf};
use common::{Folder, Run, Tensors, distance, fixture, read_tensors, rlx};

const TOLERANCE: f32 = 2e-4;

fn generate(model: &std::path::Path, args: &[&str]) -> Run {
    let model = model.display().to_string();
    rlx(["generate", "--model", &model].iter().chain(args))
}

#[test]
fn forward_gives_the_hidden_states_and_logits_of_the_reference() {
    let folder = Folder::new();
    let out = folder.arg("out.safetensors");
    for (name, output) in [
        ("bert", "last_hidden_state"),
        ("llama", "logits"),
        ("llama3_rope_scaling", "logits"),
        ("mistral", "logits"),
    ] {
        let (model, expected) = (fixture(name), fixture(name).join("expected.safetensors"));
        let inputs = expected.display().to_string();
        let args =
            ["forward", "--model", &model.display().to_string(), "--inputs", &inputs, "--outputs", &out]
                .map(str::to_owned);
        rlx(args.iter().map(String::as_str).chain(["--kv-dtype", "f32"])).ok();
        let tensors = read_tensors(std::path::Path::new(&out));
        assert_eq!((tensors.len(), tensors[0].0.as_str()), (1, output));
        let want = Tensors::open(name, "expected.safetensors").get(output);
        assert_eq!(tensors[0].1.shape().iter().product::<usize>(), want.shape().iter().product::<usize>());
        let off = distance(&tensors[0].1.to_f32().unwrap(), &want.to_f32().unwrap());
        assert!(off <= TOLERANCE, "{name}: off by {off}");
    }
}

#[test]
fn greedy_ids_are_those_of_the_reference() {
    for name in ["llama", "llama3_rope_scaling", "mistral"] {
        let expected = Tensors::open(name, "expected.safetensors");
        let (prompt, greedy) = (expected.ids("input_ids"), expected.ids("greedy_ids"));
        let ids: Vec<i64> = prompt.iter().chain(&greedy).map(|&id| id.into()).collect();
        let folder = Folder::new();
        let ty = rlx::ir::TensorType::new(rlx::ir::DType::I64, vec![1, ids.len()]);
        let ids = rlx::ir::Tensor::from_i64(ty, &ids).unwrap();
        common::write_tensors(&folder.path().join("in.safetensors"), &[("input_ids".into(), ids)]);
        let (model, out) = (fixture(name).display().to_string(), folder.arg("out.safetensors"));
        let inputs = folder.arg("in.safetensors");
        rlx(["forward", "--model", &model, "--inputs", &inputs, "--outputs", &out, "--kv-dtype", "f32"]).ok();
        let logits = &read_tensors(std::path::Path::new(&out))[0].1;
        let vocab_size = logits.shape()[2];
        let values = logits.to_f32().unwrap();
        let best = |row: usize| {
            let row = &values[row * vocab_size..(row + 1) * vocab_size];
            (0..vocab_size).max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap() as u32
        };
        let found: Vec<u32> = (0..greedy.len()).map(|i| best(prompt.len() - 1 + i)).collect();
        assert_eq!(found, greedy, "{name}");
    }
}

#[test]
fn json_has_the_text_and_its_tokens() {
    let model = llama_gguf("cli-json");
    let run = generate(&model.0, &["-p", "hi", "-n", "8", "--temp", "0", "--format", "json"]).ok();
    let report = run.json();
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    let wanted =
        ["text", "token_ids", "prompt_tokens", "finish_reason", "prefill_tok_per_s", "decode_tok_per_s"];
    assert_eq!(keys, wanted);
    assert!(["length", "eos"].contains(&report["finish_reason"].as_str().unwrap()));
    // Greedy is deterministic, and streaming gives the same text.
    let streamed = generate(&model.0, &["-p", "hi", "-n", "8", "--temp", "0"]).ok();
    assert_eq!(streamed.text(), format!("{}\n", report["text"].as_str().unwrap()));
}

#[test]
fn no_tokens_are_wanted_and_none_come() {
    let model = llama_gguf("cli-none");
    assert_eq!(generate(&model.0, &["-p", "hi", "-n", "0"]).ok().text(), "\n");
    let report = generate(&model.0, &["-p", "hi", "-n", "0", "--format", "json"]).ok().json();
    assert_eq!((&report["text"], &report["finish_reason"]), (&"".into(), &"length".into()));
    // An empty prompt is one.
    generate(&model.0, &["-p", "", "-n", "1"]).ok();
}

#[test]
fn a_seed_repeats_and_is_told() {
    let model = llama_gguf("cli-seed");
    let with = |seed: &str| {
        let args =
            ["-p", "hi", "-n", "16", "--temp", "2", "--top-k", "0", "--seed", seed, "--format", "json"];
        generate(&model.0, &args).ok().json()["token_ids"].clone()
    };
    assert_eq!(with("7"), with("7"));
    assert_ne!(with("7"), with("8"));
    let run = generate(&model.0, &["-v", "-p", "hi", "-n", "4", "--temp", "2", "--format", "json"]).ok();
    let seed = run.stderr.lines().find_map(|l| l.strip_prefix("info: seed ")).unwrap().to_owned();
    let args = ["-p", "hi", "-n", "4", "--temp", "2", "--format", "json", "--seed", &seed];
    assert_eq!(generate(&model.0, &args).ok().json()["token_ids"], run.json()["token_ids"]);
}

#[test]
fn penalties_and_bias_move_the_choice() {
    let model = llama_gguf("cli-penalties");
    let ids = |args: &[&str]| {
        let base = ["-p", "hi", "-n", "12", "--temp", "0", "--format", "json", "--logit-bias", "2=-inf"];
        let args = [&base, args].concat();
        let report = generate(&model.0, &args).ok().json();
        let ids = report["token_ids"].as_array().unwrap().iter();
        ids.map(|id| id.as_u64().unwrap()).collect::<Vec<_>>()
    };
    let plain = ids(&[]);
    let ban = format!("{}=-inf", plain[0]);
    assert!(!ids(&["--logit-bias", &ban]).contains(&plain[0]));
    assert!(ids(&["--logit-bias", "300=1000"]).iter().all(|&id| id == 300));
    for (option, value) in
        [("--repeat-penalty", "1000"), ("--presence-penalty", "1000"), ("--frequency-penalty", "1000")]
    {
        let mut ids = ids(&["--repeat-last-n", "-1", option, value]);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 12, "{option}: no token comes twice");
    }
    assert_eq!(ids(&["--repeat-penalty", "1000", "--repeat-last-n", "0"]), plain);
}

#[test]
fn a_prompt_that_does_not_fit_is_refused() {
    let model = llama_gguf("cli-context");
    let prompt = "a".repeat(40);
    generate(&model.0, &["-p", &prompt, "-c", "16"]).failed(1, &["context", "16"]);
    generate(&model.0, &["-p", "a", "-c", "100000"]).failed(2, &["100000", "256"]);
    let run = generate(&model.0, &["-p", "ab", "-c", "8", "--temp", "0", "--format", "json"]).ok().json();
    assert!(run["token_ids"].as_array().unwrap().len() <= 8);
}

#[test]
fn prompt_and_continuation_fill_the_context_and_no_more() {
    let model = llama_gguf("cli-full");
    // The end-of-text token would end it earlier.
    let run = |args: &[&str]| {
        let base = ["-p", "ab", "--temp", "0", "--logit-bias", "2=-inf", "--format", "json"];
        generate(&model.0, &[&base, args].concat())
    };
    let prompt = run(&["-n", "0"]).ok().json()["prompt_tokens"].as_u64().unwrap();
    let (full, room) = (prompt.to_string(), (prompt + 3).to_string());
    let cut = run(&["-c", &room]).ok();
    assert_eq!(cut.json()["token_ids"].as_array().unwrap().len(), 3);
    assert!(cut.stderr.contains(&format!("the context of {room} tokens is full")), "{}", cut.stderr);
    assert!(run(&["-c", &room, "-n", "4"]).ok().stderr.contains("is full"));
    assert_eq!(run(&["-c", &room, "-n", "3"]).ok().stderr, "");
    run(&["-c", &full]).failed(1, &["no token fits", &full]);
    run(&["-c", &full, "-n", "0"]).ok();
}

#[test]
fn stdout_stays_empty_where_nothing_was_written() {
    let model = llama_gguf("cli-empty");
    let prompt = "a".repeat(40);
    for (args, code, word) in [
        (&["-c", "16"][..], 1, "context"),
        (&["--stop", ""], 2, "stop"),
        (&["--logit-bias", "99999999=1"], 2, "99999999"),
    ] {
        let run = generate(&model.0, &[&["-p", &prompt], args].concat()).failed(code, &[word]);
        assert_eq!(run.text(), "");
        assert!(!run.stderr.contains("after "), "it is known before the prompt is run: {}", run.stderr);
    }
}

#[test]
fn values_that_do_not_fit_are_errors_of_the_command_line() {
    let model = llama_gguf("cli-values");
    for (option, value) in [
        ("-n", "-2"),
        ("-n", "some"),
        ("--temp", "-1"),
        ("--temp", "nan"),
        ("--top-p", "1.5"),
        ("--min-p", "-0.1"),
        ("--top-k", "-1"),
        ("--seed", "x"),
        ("--repeat-penalty", "0"),
        ("--repeat-last-n", "-2"),
        ("--presence-penalty", "inf"),
        ("--frequency-penalty", "x"),
        ("--logit-bias", "1"),
        ("--logit-bias", "1=nan"),
        ("--logit-bias", "314=1"),
        ("--format", "npy"),
        ("-c", "-1"),
    ] {
        generate(&model.0, &["-p", "a", option, value]).failed(2, &[]);
    }
    rlx(["generate", "-p", "a"]).failed(2, &["--model"]);
    generate(&model.0, &[]).failed(2, &["--prompt"]);
}

#[test]
fn weights_that_are_no_numbers_are_told_where_they_are_reached() {
    let nan = |values: &mut [f32]| values.fill(f32::NAN);
    let folder = changed_copy("llama", "model.norm.weight", nan);
    let out = Folder::new();
    let (model, outputs) = (folder.0.display().to_string(), out.arg("out.safetensors"));
    let inputs = fixture("llama").join("expected.safetensors").display().to_string();
    let args = ["forward", "--model", &model, "--inputs", &inputs, "--outputs", &outputs];
    rlx(args).failed(1, &["row 0"]);
    assert!(!out.path().join("out.safetensors").exists());
}

#[test]
fn a_reader_that_goes_away_ends_the_text() {
    let model = llama_gguf("cli-pipe");
    let mut child = common::command()
        .args([
            "generate",
            "--model",
            &model.0.display().to_string(),
            "-p",
            "hi",
            "--temp",
            "3",
            "--top-k",
            "0",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
