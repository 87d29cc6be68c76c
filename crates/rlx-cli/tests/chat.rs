//! `rlx chat` on a tiny model with a chat template.
#![allow(clippy::unwrap_used)]

mod common;

use common::models::{TempPath, llama_gguf, llama_gguf_with};
use common::{Run, rlx_with_stdin};
use serde_json::Value;

const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}{% if m.content == 'no' %}{{ raise_exception('not this') }}{% endif %}\
                        {{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}";

fn model(name: &str) -> TempPath {
    llama_gguf_with(name, |m| {
        m.set("tokenizer.chat_template", TEMPLATE);
    })
}

fn chat(model: &TempPath, args: &[&str], input: impl AsRef<[u8]>) -> Run {
    let model = model.0.display().to_string();
    rlx_with_stdin(["chat", "--model", &model].iter().chain(args), input.as_ref())
}

fn count(turn: &Value, key: &str) -> u64 {
    turn[key].as_u64().unwrap()
}

#[test]
fn each_line_is_answered_and_the_cache_is_kept() {
    let model = model("chat-turns");
    let args = ["--temp", "0", "-n", "8", "--logit-bias", "2=-inf"];
    let json = chat(&model, &[&args[..], &["--format", "json"]].concat(), "hi\n\n  \r\nand you?\r\n").ok();
    let turns = json.json_lines();
    assert_eq!((turns.len(), json.stderr.as_str()), (2, ""));
    let keys: Vec<&String> = turns[0].as_object().unwrap().keys().collect();
    let wanted = [
        "text",
        "token_ids",
        "prompt_tokens",
        "cached_tokens",
        "finish_reason",
        "prefill_tok_per_s",
        "decode_tok_per_s",
    ];
    assert_eq!(keys, wanted);
    // BOS and one token for each byte, the space in front included.
    let first = "user: hi\nassistant: ".len() as u64 + 2;
    assert_eq!((count(&turns[0], "prompt_tokens"), count(&turns[0], "cached_tokens")), (first, 0));
    // The last token of a prompt is run again: its logits are wanted.
    assert!(count(&turns[1], "cached_tokens") >= first - 1, "{turns:?}");
    assert!(count(&turns[1], "prompt_tokens") > count(&turns[1], "cached_tokens"));

    let text = chat(&model, &args, "hi\nand you?").ok();
    let answers: String = turns.iter().map(|t| t["text"].as_str().unwrap().to_owned() + "\n").collect();
    assert_eq!((text.text(), text.stderr.as_str()), (answers.as_str(), ""));
}

#[test]
fn a_system_message_goes_before_all_others() {
    let model = model("chat-system");
    let args = ["--temp", "0", "-n", "1", "--format", "json"];
    let plain = chat(&model, &args, "hi").ok().json();
    let with = chat(&model, &[&args[..], &["--system", "- be brief"]].concat(), "hi").ok().json();
    let more = "system: - be brief\n".len() as u64;
    assert_eq!(count(&with, "prompt_tokens"), count(&plain, "prompt_tokens") + more);
}

#[test]
fn a_seed_repeats() {
    let model = model("chat-seed");
    let with = |seed: &str| {
        let args = ["--temp", "2", "--top-k", "0", "-n", "12", "--seed", seed, "--format", "json"];
        chat(&model, &args, "hi").ok().json()["token_ids"].clone()
    };
    assert_eq!(with("7"), with("7"));
    assert_ne!(with("7"), with("8"));
}

#[test]
fn without_a_template_nothing_is_guessed() {
    let plain = llama_gguf("chat-none");
    chat(&plain, &[], "hi").failed(3, &["chat template", "chat-none"]);
    let broken = llama_gguf_with("chat-broken", |m| {
        m.set("tokenizer.chat_template", "{% for %}");
    });
    chat(&broken, &[], "hi").failed(3, &["chat template", "line 1"]);
}

#[test]
fn no_text_and_text_that_cannot_be_read_are_errors() {
    let model = model("chat-empty");
    for nothing in ["", "\n", " \n\r\n"] {
        chat(&model, &[], nothing).failed(2, &["stdin"]);
    }
    chat(&model, &["--temp", "0", "-n", "1"], b"\xff\xfe\n").failed(3, &["line 1", "UTF-8"]);
    chat(&model, &[], "no\n").failed(2, &["not this"]);
    chat(&model, &["--format", "npy"], "hi\n").failed(2, &["npy"]);
    chat(&model, &["--temp", "-1"], "hi\n").failed(2, &["temperature"]);
}

#[test]
fn a_conversation_that_does_not_fit_is_refused() {
    let model = model("chat-context");
    let long = "a".repeat(80);
    chat(&model, &["-c", "64"], &long).failed(1, &["context", "64"]);
    // The first turn fits, the second does not; the first answer has been written.
    let args = ["-c", "64", "-n", "4", "--temp", "0", "--logit-bias", "2=-inf", "--format", "json"];
    let run = chat(&model, &args, format!("hi\n{long}\n")).failed(1, &["context"]);
    assert_eq!(run.json_lines().len(), 1);
    // An answer that the context's end cuts off says so.
    let args = ["-c", "32", "--temp", "0", "--logit-bias", "2=-inf", "--format", "json"];
    let run = chat(&model, &args, "hi\n").ok();
    assert_eq!(run.json()["finish_reason"], "length");
    assert!(run.stderr.contains("context of 32 tokens is full"), "{}", run.stderr);
}

#[test]
fn a_reader_that_goes_away_ends_the_conversation() {
    use std::io::Write;
    let model = model("chat-pipe");
    let mut child = common::command()
        .args(["chat", "--model", &model.0.display().to_string(), "--temp", "3", "--top-k", "0"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let _ = stdin.write_all(b"hi\nand you?\n");
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
