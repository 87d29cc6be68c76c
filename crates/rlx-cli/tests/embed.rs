//! `rlx embed`: formats, inputs, options, and what goes wrong.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, Run, distance, rlx, rlx_with_stdin, vector};
use rlx::ir::Tensor;

/// The row of the letter x in the tiny vocabulary.
const LETTER_X: usize = 48;
const DIM: usize = 96;

fn embed(folder: &Folder, args: &[&str]) -> Run {
    let model = folder.arg("");
    rlx(["embed", "--model", &model].iter().chain(args))
}

#[test]
fn each_text_has_a_line_in_order() {
    let folder = Folder::bert();
    let rows = embed(&folder, &["a cat", "", "the cat"]).ok().json_lines();
    assert_eq!(rows.len(), 3);
    for (i, (row, text)) in rows.iter().zip(["a cat", "", "the cat"]).enumerate() {
        assert_eq!(row["index"], i);
        assert_eq!(row["text"], text);
        assert_eq!(row["truncated"], false);
        assert!((vector(row).iter().map(|v| v * v).sum::<f32>() - 1.0).abs() < 1e-5);
    }
    // An empty text has the tokens that the model adds.
    assert_eq!(rows[1]["tokens"], 2);
    let mut keys: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["embedding", "index", "text", "tokens", "truncated"]);
}

#[test]
fn all_formats_hold_the_same_vectors() {
    let folder = Folder::bert();
    let lines = embed(&folder, &["a cat", "x"]).ok().json_lines();
    let array = embed(&folder, &["a cat", "x", "--format", "json"]).ok().json();
    assert_eq!(array.as_array().unwrap(), &lines);

    let npy = embed(&folder, &["a cat", "x", "--format", "npy"]).ok().stdout;
    assert_eq!(&npy[..8], b"\x93NUMPY\x01\x00");
    let data = 10 + usize::from(u16::from_le_bytes([npy[8], npy[9]]));
    assert!(std::str::from_utf8(&npy[10..data]).unwrap().contains("'shape': (2, 96)"));
    let values: Vec<f32> =
        npy[data..].chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(values, [vector(&lines[0]), vector(&lines[1])].concat());

    let text = embed(&folder, &["a cat", "x", "--format", "text"]).ok();
    assert!(text.text().contains("cosine") && text.text().contains("1.0000"), "{}", text.text());
    let one = embed(&folder, &["a cat", "--format", "text"]).ok();
    assert!(!one.text().contains("cosine") && one.text().contains("96 numbers"), "{}", one.text());
}

#[test]
fn texts_come_from_files_and_stdin() {
    let folder = Folder::bert()
        .file("lines.txt", "a cat\n\nthe\0cat\r\n")
        .file("rows.jsonl", "{\"id\": 1, \"text\": \"a cat\"}\n{\"text\": \"the\\u0000cat\"}\n");
    let lines = embed(&folder, &["--input", &folder.arg("lines.txt")]).ok().json_lines();
    let texts: Vec<&str> = lines.iter().map(|r| r["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["a cat", "", "the\0cat"]);
    let rows = embed(&folder, &["--input", &folder.arg("rows.jsonl")]).ok().json_lines();
    assert_eq!(rows.len(), 2);
    assert_eq!((vector(&rows[0]), vector(&rows[1])), (vector(&lines[0]), vector(&lines[2])));

    let model = folder.arg("");
    let piped = rlx_with_stdin(["embed", "--model", &model, "--input", "-"], b"a cat\n").ok().json_lines();
    assert_eq!(vector(&piped[0]), vector(&lines[0]));
    embed(&folder, &["--input", &folder.arg("no.txt")]).failed(3, &["no.txt"]);
    let bad = Folder::new().file("bad.txt", b"a\n\xff\n").file("bad.jsonl", "{\"text\": \"a\"}\nb\n");
    embed(&folder, &["--input", &bad.arg("bad.txt")]).failed(3, &["line 2", "UTF-8"]);
    embed(&folder, &["--input", &bad.arg("bad.jsonl")]).failed(3, &["line 2", "text"]);
}

#[test]
fn many_texts_keep_their_order_over_pieces() {
    let texts: Vec<String> = (0..2500).map(|i| ["a cat", "the cat sat", "x", ""][i % 4].to_owned()).collect();
    let folder = Folder::bert().file("lines.txt", texts.join("\n") + "\n");
    let rows =
        embed(&folder, &["--input", &folder.arg("lines.txt"), "--batch-tokens", "512"]).ok().json_lines();
    assert_eq!(rows.len(), texts.len());
    for (i, row) in rows.iter().enumerate() {
        assert_eq!((&row["index"], &row["text"]), (&i.into(), &texts[i].as_str().into()));
        assert!(distance(&vector(row), &vector(&rows[i % 4])) < 1e-5);
    }
}

#[test]
fn a_long_text_is_cut_and_says_so() {
    let long = "cat ".repeat(1 << 18);
    let folder = Folder::bert().file("long.txt", format!("the\n{long}\n"));
    let run = embed(&folder, &["--input", &folder.arg("long.txt")]).ok();
    let rows = run.json_lines();
    assert_eq!((&rows[1]["truncated"], &rows[1]["tokens"]), (&true.into(), &64.into()));
    assert_eq!(rows[0]["truncated"], false);
    assert!(run.stderr.contains("warning: text 1 was cut at 64 tokens"), "{}", run.stderr);
    let quiet = embed(&folder, &["-q", "--input", &folder.arg("long.txt")]).ok();
    assert_eq!(quiet.stderr, "");
    let refused = embed(&folder, &["--no-truncate", "--input", &folder.arg("long.txt")]);
    refused.failed(1, &["text 1", "524290 tokens", "64 at most"]);
    let refused = embed(&folder, &["--no-truncate", "--input", &folder.arg("long.txt")]);
    assert_eq!(refused.json_lines().len(), 1, "the text that fits has its vector");
}

#[test]
fn options_change_the_vectors_as_they_say() {
    let folder = Folder::bert();
    let one = |args: &[&str]| vector(&embed(&folder, args).ok().json_lines()[0]);
    let plain = one(&["cat"]);
    assert_eq!(one(&["cat", "--pooling", "mean"]), plain);
    for pooling in ["cls", "last", "max"] {
        assert!(distance(&one(&["cat", "--pooling", pooling]), &plain) > 1e-3, "{pooling}");
    }
    let raw = one(&["cat", "--no-normalize"]);
    let length = raw.iter().map(|v| v * v).sum::<f32>().sqrt();
    assert!((length - 1.0).abs() > 1e-2);
    assert!(raw.iter().zip(&plain).all(|(r, p)| (r / length - p).abs() < 1e-5));
    assert_eq!(one(&["cat", "--dims", "7"]).len(), 7);
    assert!(distance(&one(&["cat", "--prompt-name", "query"]), &one(&["the cat"])) < 1e-6);
    assert!(distance(&one(&["cat", "--prefix", "the "]), &one(&["the cat"])) < 1e-6);
    for types in
        [&["--dtype", "q8_0"][..], &["--weights", "f16"], &["--weights", "bf16"], &["--compute", "f16"]]
    {
        let other = one(&[&["cat"][..], types].concat());
        assert!(common::cosine(&other, &plain) > 0.99, "{types:?}");
    }
    assert!(distance(&one(&["cat", "--dtype", "f32", "--threads", "1"]), &plain) < 1e-5);
}

#[test]
fn no_text_is_an_error_of_the_command_line() {
    let folder = Folder::bert().file("empty.txt", "");
    rlx(["embed"]).failed(2, &["no text"]);
    embed(&folder, &[]).failed(2, &["no text", "--input"]);
    embed(&folder, &["--input", &folder.arg("empty.txt")]).failed(2, &["empty.txt", "no text"]);
    embed(&folder, &["a", "--input", &folder.arg("empty.txt")]).failed(2, &["--input"]);
}

#[test]
fn values_that_do_not_fit_are_errors_of_the_command_line() {
    let folder = Folder::bert();
    for (args, word) in [
        (["--device", "gpu"], "gpu"),
        (["--format", "xml"], "xml"),
        (["--dtype", "q4_0"], "q4_0"),
        (["--weights", "q9"], "q9"),
        (["--compute", "i4"], "i4"),
        (["--kv-dtype", "bf16"], "bf16"),
        (["--strategy", "fast"], "fast"),
        (["--threads", "many"], "many"),
        (["--pooling", "median"], "median"),
        (["--prompt-name", "passage"], "query"),
        (["--dims", "0"], "96"),
        (["--dims", "97"], "96"),
        (["--batch-tokens", "0"], "0"),
        (["--no-such-option", "1"], "--no-such-option"),
    ] {
        embed(&folder, &["cat", args[0], args[1]]).failed(2, &[word]);
    }
    embed(&folder, &["cat", "--device", "metal"]).failed(4, &["metal", "cpu"]);
    embed(&folder, &["cat", "--strategy", "captured"]).failed(4, &["captured", "thunks"]);
    rlx(["no-such-command"]).failed(2, &["no-such-command"]);
}

#[test]
fn a_text_whose_vector_is_not_finite_fails_alone() {
    let broken = Folder::bert().tensors(|tensors| {
        let (_, table) = tensors.iter_mut().find(|(n, _)| n.ends_with("word_embeddings.weight")).unwrap();
        let mut values = table.to_f32().unwrap();
        values[LETTER_X * DIM..(LETTER_X + 1) * DIM].fill(f32::NAN);
        *table = Tensor::f32(table.shape(), &values).unwrap();
    });
    // A tensor with NaN does no harm where the run does not reach it.
    let right = embed(&Folder::bert(), &["a cat", "the cat"]).ok().json_lines();
    let reached = embed(&broken, &["a cat", "the cat"]).ok().json_lines();
    assert!(distance(&vector(&reached[0]), &vector(&right[0])) < 1e-5);

    let run = embed(&broken, &["a cat", "x", "the cat"]).failed(1, &["text 1", "NaN"]);
    let rows = run.json_lines();
    assert_eq!((rows.len(), &rows[1]["index"]), (2, &2.into()));
    assert!(distance(&vector(&rows[1]), &vector(&right[1])) < 1e-5);
    embed(&broken, &["x", "a cat", "x x"]).failed(1, &["2 of 3 texts have no vector: 0, 2: text 0: "]);
    // An array has no place to say which text a row belongs to.
    let run = embed(&broken, &["a cat", "x", "the cat", "--format", "npy"]).failed(1, &["text 1"]);
    assert!(run.stdout.is_empty());
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::io::Read;
    let folder = Folder::bert().file("lines.txt", "a cat\n".repeat(3000));
    let mut child = common::command()
        .args(["embed", "--model", &folder.arg(""), "--input", &folder.arg("lines.txt")])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut start).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
