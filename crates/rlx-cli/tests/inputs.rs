//! What is read, and what is refused rather than left out in silence.
#![allow(clippy::unwrap_used)]

mod common;

use common::models::llama_gguf_with;
use common::{Folder, command, distance, finish, fixture, read_tensors, rlx, rlx_with_stdin, write_tensors};
use rlx::ir::{DType, Tensor, TensorType};

/// Integers [1, n].
fn row(name: &str, values: &[i64]) -> (String, Tensor) {
    let ty = TensorType::new(DType::I64, vec![1, values.len()]);
    (name.to_owned(), Tensor::from_i64(ty, values).unwrap())
}

/// `forward` of a tiny model on these tensors; its outputs, if it succeeded.
fn forward(model: &str, tensors: &[(String, Tensor)], more: &[&str]) -> (common::Run, Option<Vec<f32>>) {
    let folder = Folder::new();
    write_tensors(&folder.path().join("in.safetensors"), tensors);
    let (inputs, outputs) = (folder.arg("in.safetensors"), folder.arg("out.safetensors"));
    let args = ["forward", "--model", model, "--inputs", &inputs, "--outputs", &outputs];
    let run = rlx(args.iter().chain(more));
    let out = folder.path().join("out.safetensors");
    let values = out.exists().then(|| read_tensors(&out)[0].1.to_f32().unwrap());
    (run, values)
}

#[test]
fn inputs_that_would_change_the_result_are_refused() {
    let model = fixture("bert").display().to_string();
    let ids = || row("input_ids", &[2, 5, 9]);
    let plain = forward(&model, &[ids()], &[]);
    assert_eq!(plain.0.ok().stderr, "");
    let zeros = forward(&model, &[ids(), row("token_type_ids", &[0, 0, 0])], &[]);
    assert_eq!((zeros.0.ok().stderr.as_str(), zeros.1), ("", plain.1));
    let kinds = forward(&model, &[ids(), row("token_type_ids", &[0, 1, 1])], &[]);
    kinds.0.failed(2, &["in.safetensors", "token_type_ids holds 1"]);
    let short = forward(&model, &[ids(), row("token_type_ids", &[0, 0])], &[]);
    short.0.failed(2, &["token_type_ids is [1, 2]"]);
    let positions = forward(&model, &[ids(), row("position_ids", &[3, 4, 5])], &[]);
    positions.0.failed(2, &["in.safetensors", "position_ids"]);
    let other = forward(&model, &[ids(), row("labels", &[0, 0, 0])], &[]);
    assert!(other.0.ok().stderr.contains("without effect: labels"));
}

#[test]
fn inputs_of_another_kind_than_promised_are_refused() {
    let model = fixture("bert").display().to_string();
    let of = |name: &str, dtype: DType, shape: &[usize], values: &[i64]| {
        (name.to_owned(), Tensor::from_i64(TensorType::new(dtype, shape), values).unwrap())
    };
    for dtype in [DType::Bool, DType::U8, DType::I16, DType::U32, DType::F32] {
        let ids = of("input_ids", dtype, &[1, 2], &[1, 1]);
        forward(&model, &[ids], &[]).0.failed(2, &["input_ids is", dtype.name(), "i64 or i32"]);
    }
    forward(&model, &[of("input_ids", DType::I32, &[1, 2], &[1, 1])], &[]).0.ok();
    for shape in [&[2][..], &[1, 1, 2], &[]] {
        let values = vec![1; shape.iter().product()];
        let ids = of("input_ids", DType::I64, shape, &values);
        forward(&model, &[ids], &[]).0.failed(2, &["input_ids is i64", "expected [B, S]"]);
    }
    let ids = || row("input_ids", &[2, 5, 9]);
    forward(&model, &[ids(), row("attention_mask", &[1, 1, 2])], &[])
        .0
        .failed(2, &["attention_mask holds 2"]);
    forward(&model, &[ids(), row("attention_mask", &[1, 1, -1])], &[])
        .0
        .failed(2, &["attention_mask holds -1"]);
    let mask = of("attention_mask", DType::F32, &[1, 3], &[1, 1, 0]);
    forward(&model, &[ids(), mask], &[]).0.failed(2, &["attention_mask is f32"]);
    let masks = [DType::Bool, DType::U8, DType::I64];
    let kept = masks.map(|dtype| of("attention_mask", dtype, &[1, 3], &[1, 1, 0]));
    let kept = kept.map(|mask| forward(&model, &[ids(), mask], &[]).1.unwrap());
    assert!(kept[0] == kept[1] && kept[1] == kept[2]);
}

#[test]
fn rows_beyond_the_models_positions_exceed_the_context() {
    let bert = fixture("bert").display().to_string();
    forward(&bert, &[row("input_ids", &[5; 65])], &[]).0.failed(1, &["row 0", "64"]);
    let llama = Folder::model("llama").config(|c| {
        c.insert("max_position_embeddings".into(), 8.into());
    });
    forward(&llama.arg(""), &[row("input_ids", &[5; 8])], &[]).0.ok();
    forward(&llama.arg(""), &[row("input_ids", &[5; 9])], &[]).0.failed(1, &["row 0", "9 tokens", "8"]);
    // What is masked takes no place.
    let mask = row("attention_mask", &[1, 1, 1, 1, 1, 1, 1, 1, 0]);
    forward(&llama.arg(""), &[row("input_ids", &[5; 9]), mask], &[]).0.ok();
}

#[test]
fn keys_and_values_have_the_type_that_is_asked_for() {
    let llama = fixture("llama").display().to_string();
    let of = |more: &[&str]| {
        let (run, values) = forward(&llama, &[row("input_ids", &[5, 9, 17, 30, 12])], more);
        run.ok();
        values.unwrap()
    };
    let exact = of(&[]);
    assert_eq!(exact, of(&["--kv-dtype", "f32"]));
    let half = distance(&exact, &of(&["--kv-dtype", "f16"]));
    assert!(half > 0.0 && half < 0.05, "{half}");
}

#[test]
fn a_matrix_of_integers_is_named() {
    let name = "encoder.layer.0.attention.self.query.weight";
    for dtype in [DType::I32, DType::I64] {
        let folder = Folder::bert().tensors(|tensors| {
            let (_, tensor) = tensors.iter_mut().find(|(n, _)| n == name).unwrap();
            let ty = TensorType::new(dtype, tensor.shape());
            *tensor = Tensor::from_i64(ty, &vec![1; tensor.shape().iter().product()]).unwrap();
        });
        let (path, dtype) = (folder.arg(""), dtype.name());
        rlx(["embed", "--model", &path, "a"]).failed(3, &[&path, name, dtype]);
        rlx(["quantize", &path, &folder.arg("o.gguf"), "--type", "f16"]).failed(3, &[&path, name, dtype]);
    }
}

#[test]
fn weights_that_are_no_numbers_matter_where_they_are_reached_whatever_they_become() {
    let folder = Folder::bert().tensors(|tensors| {
        let (_, table) = tensors.iter_mut().find(|(n, _)| n == "embeddings.word_embeddings.weight").unwrap();
        let mut values = table.to_f32().unwrap();
        values[7 * table.shape()[1]] = f32::NAN;
        *table = Tensor::f32(table.shape(), &values).unwrap();
    });
    let path = folder.arg("");
    for options in [&["--weights", "f32"][..], &["--weights", "q8_0"], &["--dtype", "q8_0"]] {
        let (run, values) = forward(&path, &[row("input_ids", &[2, 5, 9])], options);
        run.ok();
        assert!(values.unwrap().iter().all(|v| v.is_finite()), "{options:?}");
        forward(&path, &[row("input_ids", &[2, 7, 9])], options).0.failed(1, &["row 0", "NaN"]);
    }
    let quantised = rlx(["quantize", &path, &folder.arg("o.gguf"), "--type", "q8_0"]);
    quantised.failed(1, &["token_embd.weight", "NaN"]);
}

#[test]
fn a_tensor_that_no_layer_has_is_named_with_its_file() {
    let folder = Folder::model("llama").tensors(|tensors| {
        tensors.push(("model.layers.0.self_attn.extra.weight".into(), Tensor::f32([1], &[0.0]).unwrap()));
    });
    let path = folder.arg("");
    forward(&path, &[row("input_ids", &[5])], &[]).0.failed(3, &[&path, "self_attn.extra.weight"]);
}

#[test]
fn a_tensor_that_is_there_twice_is_refused_by_all() {
    let name = "encoder.layer.0.attention.output.LayerNorm.weight";
    let folder = Folder::bert().tensors(|tensors| {
        let tensor = tensors.iter().find(|(n, _)| n == name).unwrap().1.clone();
        tensors.push((name.replace("weight", "gamma"), tensor));
    });
    let path = folder.arg("");
    let words = [path.as_str(), "LayerNorm.weight", "LayerNorm.gamma"];
    forward(&path, &[row("input_ids", &[5])], &[]).0.failed(3, &words);
    rlx(["embed", "--model", &path, "a"]).failed(3, &words);
    rlx(["quantize", &path, &folder.arg("o.gguf"), "--type", "f16"]).failed(3, &words);
}

#[test]
fn json_objects_without_a_text_are_no_texts() {
    let model = Folder::bert();
    let embed = |input: &str, more: &[&str]| {
        let args = ["embed", "--model", &model.arg(""), "--input", "-"].map(str::to_owned);
        rlx_with_stdin(args.iter().map(String::as_str).chain(more.iter().copied()), input.as_bytes())
    };
    for first in ["{\"text\":null}\n", "{\"id\":1,\"content\":\"x\"}\n"] {
        embed(first, &[]).failed(3, &["stdin: line 1", "\"text\"", "--input-format text"]);
        let rows = embed(first, &["--input-format", "text"]).ok().json_lines();
        assert_eq!((rows.len(), rows[0]["text"].as_str()), (1, Some(first.trim_end())));
    }
    embed("{\"text\":\"a\"}\n{\"content\":\"b\"}\n", &[]).failed(3, &["stdin: line 2"]);
    embed("a text\n", &["--input-format", "jsonl"]).failed(3, &["stdin: line 1"]);
    embed("{\"text\":\"a\"}\n", &["--input-format", "xml"]).failed(2, &["xml", "jsonl"]);
    embed("{\"text\":\"a\",}\n{\"text\":\"b\"}\n", &[]).failed(2, &["stdin: line 1", "--input-format text"]);
    assert_eq!(embed("\n{\"text\":\"a\"}\n", &[]).ok().json_lines()[0]["text"], "a");
    rlx(["embed", "--model", &model.arg(""), "--input-format", "text", "a"]).failed(2, &["--input"]);
}

#[test]
#[cfg(target_os = "linux")]
fn input_without_an_end_is_refused_within_bounded_memory() {
    let limited = |args: &[&str], stdin: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg("ulimit -v 2097152 && exec \"$0\" \"$@\" < \"$STDIN\"").env("STDIN", stdin);
        finish(shell.arg(command().get_program()).args(args))
    };
    let model = Folder::bert();
    let zero = ["embed", "--model", &model.arg(""), "-t", "1", "--input", "/dev/zero"];
    limited(&zero, "/dev/null").failed(3, &["/dev/zero: line 1", "64 MiB"]);
    let llama = llama_gguf_with("cli-zero", |m| m.set("tokenizer.chat_template", "{{ messages }}"));
    let chat = ["chat", "--model", &llama.0.display().to_string(), "-t", "1"];
    limited(&chat, "/dev/zero").failed(3, &["stdin: line 1", "64 MiB"]);
}

#[test]
fn a_long_line_is_a_text() {
    let model = Folder::bert();
    let text = "a cat ".repeat((1 << 20) / 6 + 1);
    let args = ["embed", "--model", &model.arg(""), "--input", "-"];
    let rows = rlx_with_stdin(args, text.as_bytes()).ok().json_lines();
    assert_eq!((rows.len(), rows[0]["truncated"].as_bool()), (1, Some(true)));
}

#[test]
#[cfg(unix)]
fn pipes_are_not_waited_for() {
    let folder = Folder::bert();
    let fifo = |name: &str| {
        let _ = std::fs::remove_file(folder.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(name)).status();
        assert!(made.unwrap().success());
        folder.arg(name)
    };
    let (gguf, tensors) = (fifo("fifo.gguf"), fifo("fifo.safetensors"));
    rlx(["inspect", &gguf]).failed(3, &["fifo.gguf: not a regular file"]);
    rlx(["inspect", &tensors]).failed(3, &["fifo.safetensors: not a regular file"]);
    let model = fixture("bert").display().to_string();
    let outputs = folder.arg("out.safetensors");
    rlx(["forward", "--model", &model, "--inputs", &tensors, "--outputs", &outputs])
        .failed(3, &["fifo.safetensors"]);
    rlx(["quantize", &model, &folder.arg("o.gguf"), "--type", "f16", "--imatrix", &gguf])
        .failed(3, &["fifo.gguf"]);
    for name in ["tokenizer.json", "modules.json", "config.json"] {
        fifo(name);
        rlx(["embed", "--model", &folder.arg(""), "a"]).failed(3, &[name, "not a regular file"]);
    }
}

#[test]
#[cfg(unix)]
fn words_that_are_not_utf8_are_a_usage_error() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bad = OsStr::from_bytes(b"\xff");
    for args in [
        vec![bad],
        vec![OsStr::new("embed"), bad],
        vec![OsStr::new("embed"), OsStr::new("--pooling"), bad, OsStr::new("a")],
    ] {
        rlx(args).failed(2, &["--help"]);
    }
    finish(command().arg("settings").env("RLX_DEVICE", bad)).failed(2, &["RLX_DEVICE", "UTF-8"]);
}

#[test]
fn a_type_without_effect_is_told() {
    let model = Folder::bert();
    for args in [&["embed", "a cat"][..], &["dump", "--stage", "graph"], &["explain"]] {
        let with = |more: &[&str]| rlx([args, &["--model", &model.arg("")], more].concat()).ok().stderr;
        assert!(with(&["--kv-dtype", "f16"]).contains("--kv-dtype is without effect"), "{args:?}");
        assert!(!with(&["--dtype", "f32"]).contains("--kv-dtype"), "{args:?}");
    }
    let ids = || row("input_ids", &[2, 5, 9]);
    let run = forward(&model.arg(""), &[ids()], &["--kv-dtype", "f16"]).0.ok();
    assert!(run.stderr.contains("--kv-dtype is without effect"), "{}", run.stderr);
}

#[test]
fn words_may_come_again_and_numbers_may_be_negative() {
    let model = Folder::bert();
    let args =
        ["embed", "-q", "-q", "--dims", "3", "--dims", "7", "--model", "no", "--model", &model.arg(""), "a"];
    assert_eq!(rlx(args).ok().json_lines()[0]["embedding"].as_array().unwrap().len(), 7);
    rlx(["embed", "-t", "-1", "a"]).failed(2, &["'-1' for '--threads <N>'"]);
    rlx(["embed", "--dims", "-1", "a"]).failed(2, &["'-1' for '--dims <N>'"]);
    rlx(["embed", "-m", "", "a"]).failed(2, &["--model <MODEL>"]);
    rlx(["generate", "-m", "", "-p", "a"]).failed(2, &["--model <MODEL>"]);
}

#[test]
fn a_gguf_without_a_vocabulary_is_told_as_such() {
    let folder = Folder::new();
    let (model, gguf) = (fixture("bert").display().to_string(), folder.arg("bare.gguf"));
    rlx(["quantize", &model, &gguf, "--type", "f16"]).ok();
    let run = rlx(["embed", "--model", &gguf, "a"]).failed(3, &["bare.gguf: the file has no vocabulary"]);
    assert_eq!(run.stderr.matches("bare.gguf").count(), 1, "{}", run.stderr);
}

#[test]
fn embed_tells_what_it_did() {
    let model = Folder::bert();
    let run = rlx(["embed", "--model", &model.arg(""), "--device", "cpu", "-v", "a cat", "a dog"]).ok();
    for word in [&model.arg(""), "(bert) on cpu", "memory: weights", "2 texts with", "peak memory"] {
        assert!(run.stderr.contains(word), "{word}: {}", run.stderr);
    }
    assert_eq!(rlx(["embed", "--model", &model.arg(""), "a cat"]).ok().stderr, "");
}
