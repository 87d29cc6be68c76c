//! Files that are damaged, foreign or absurd: a clear error, the exit code 3, no panic, bounded memory.
#![allow(clippy::unwrap_used)]

mod common;

use common::models::llama_gguf;
use common::{Folder, Run, command, finish, fixture, rlx, tests_of};
use rlx::gguf::{GgmlType, Gguf, MetadataBuilder, Writer};
use rlx::ir::Tensor;

/// Runs the binary; on Linux with 2 GiB of address space, so that an absurd size cannot be allocated.
fn limited(args: &[&str]) -> Run {
    if !cfg!(target_os = "linux") {
        return rlx(args);
    }
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg("ulimit -v 2097152 && exec \"$0\" \"$@\"").arg(command().get_program()).args(args);
    finish(&mut shell)
}

fn generate(model: &str) -> Run {
    limited(&["generate", "--model", model, "-p", "a", "-n", "1", "--temp", "0", "--threads", "1"])
}

/// Runs the binary with this cache; the hub is not asked.
fn offline(args: &[&str], cache: &Folder) -> Run {
    finish(command().args(args).env("HF_HOME", cache.path()).env("HF_HUB_OFFLINE", "1"))
}

#[test]
fn what_is_not_there_is_named() {
    generate("no-such.gguf").failed(3, &["no-such.gguf"]);
    generate("no/such/folder").failed(3, &["no/such/folder"]);
    rlx(["embed", "--model", "no-such-folder", "a"]).failed(3, &["no-such-folder"]);
    rlx(["inspect", "no-such.safetensors"]).failed(3, &["no-such.safetensors"]);
    let empty = Folder::new();
    rlx(["embed", "--model", &empty.arg(""), "a"]).failed(3, &["config.json"]);
    // A hub id that is not in the cache: what was looked for, and where.
    let hub = offline(&["embed", "--model", "org/name", "a"], &empty);
    hub.failed(3, &["org/name", &empty.arg("hub")]);
}

#[test]
fn a_model_is_found_in_the_hugging_face_cache() {
    let cache = Folder::new().file("hub/models--org--name/refs/main", "abc123");
    let snapshot = cache.path().join("hub/models--org--name/snapshots/abc123");
    std::fs::create_dir_all(&snapshot).unwrap();
    let model = Folder::bert();
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        std::fs::copy(model.path().join(file), snapshot.join(file)).unwrap();
    }
    let run = offline(&["embed", "--model", "org/name", "a cat"], &cache);
    assert_eq!(run.ok().json_lines().len(), 1);
}

#[test]
fn a_gguf_file_that_ends_early_is_refused_wherever_it_ends() {
    let whole = llama_gguf("cli-whole");
    generate(&whole.0.display().to_string()).ok();
    let bytes = std::fs::read(&whole.0).unwrap();
    let data = Gguf::open(&whole.0).unwrap().tensors().iter().map(|t| t.range().start).min().unwrap();
    // Within the magic, the version, the counts, the metadata, the directory, the padding and the data.
    let mut cuts = vec![0, 3, 4, 7, 8, 12, 20, 24, 30, data - 1, data, data + 1, bytes.len() - 1];
    cuts.extend((1..16).map(|i| data * i / 16));
    cuts.extend((1..4).map(|i| data + (bytes.len() - data) * i / 4));
    let folder = Folder::new();
    let path = folder.arg("cut.gguf");
    for cut in cuts {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        generate(&path).failed(3, &["cut.gguf"]);
    }
}

#[test]
fn damaged_headers_are_refused() {
    for (file, word) in [
        ("magic", "not GGUF"),
        ("absurd-array-length", ""),
        ("absurd-tensor-count", ""),
        ("alignment-zero", "alignment"),
        ("deep-array", ""),
        ("dims-overflow", ""),
        ("metadata-not-utf8", "UTF-8"),
        ("offset-beyond-end", "offset"),
        ("removed-type", "removed"),
        ("truncated-data", ""),
        ("truncated-directory", ""),
        ("truncated-metadata", ""),
    ] {
        let name = format!("{file}.gguf");
        let path = tests_of("rlx-gguf", &format!("corpus/{name}")).display().to_string();
        limited(&["inspect", &path]).failed(3, &[&name, word]);
        generate(&path).failed(3, &[&name, word]);
    }
    for entry in std::fs::read_dir(tests_of("rlx-runtime", "corpus")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let run = limited(&["inspect", path.to_str().unwrap()]);
        if name.starts_with("sound") {
            run.ok();
        } else if run.code != 0 {
            // Some are damaged in what only reading a tensor shows.
            run.failed(3, &[&name]);
        }
    }
    let folder = Folder::new().file("text.gguf", "this is no model").file("text.txt", "nor this");
    generate(&folder.arg("text.gguf")).failed(3, &["text.gguf", "not GGUF"]);
    generate(&folder.arg("text.txt")).failed(3, &["text.txt", ".gguf"]);
    limited(&["inspect", &folder.arg("text.txt")]).failed(3, &["text.txt", ".gguf"]);
}

#[test]
fn inputs_without_tokens_give_an_empty_result_at_once() {
    for model in ["bert", "llama"] {
        for shape in ["4611686018427387904,0", "0,4611686018427387904", "10000000000,0", "0,0"] {
            let header =
                format!(r#"{{"input_ids":{{"dtype":"I64","shape":[{shape}],"data_offsets":[0,0]}}}}"#);
            let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
            let folder = Folder::new().file("in.safetensors", file);
            let (inputs, outputs) = (folder.arg("in.safetensors"), folder.arg("out.safetensors"));
            let model = fixture(model).display().to_string();
            limited(&["forward", "--model", &model, "--inputs", &inputs, "--outputs", &outputs]).ok();
            let found = std::fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(found, 2, "{shape}");
            let written = limited(&["inspect", &outputs, "--tensors", "--format", "json"]).ok().json();
            let lengths = shape.split(',').map(|n| n.parse::<u64>().unwrap());
            let written = &written["tensors"][0]["shape"];
            for (axis, length) in lengths.enumerate() {
                assert_eq!(written[axis].as_u64(), Some(length), "{shape}");
            }
        }
    }
}

#[test]
fn a_name_that_stands_twice_in_a_header_is_refused_by_all() {
    let name = "duplicate-name-same-bytes.safetensors";
    let path = tests_of("rlx-runtime", &format!("corpus/{name}"));
    limited(&["inspect", path.to_str().unwrap()]).failed(3, &[name, "\"a\" stands in it twice"]);
    let folder = Folder::model("bert");
    let weights = folder.path().join("model.safetensors");
    let bytes = std::fs::read(&weights).unwrap();
    let (len, rest) = bytes.split_at(8);
    let len = u64::from_le_bytes(len.try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&rest[..len]).unwrap().trim_end();
    let at = header.find("\"embeddings.word_embeddings.weight\"").unwrap();
    let entry = &header[at..=at + header[at..].find('}').unwrap()];
    let twice = header.replacen(entry, &format!("{entry},{entry}"), 1);
    let new = (twice.len() as u64).to_le_bytes();
    std::fs::write(&weights, [&new, twice.as_bytes(), &rest[len..]].concat()).unwrap();
    let words = ["model.safetensors", "word_embeddings.weight", "twice"];
    limited(&["dump", "--model", &folder.arg(""), "--stage", "graph"]).failed(3, &words);
    limited(&["quantize", &folder.arg(""), &folder.arg("o.gguf"), "--type", "f16"]).failed(3, &words);
}

#[test]
fn unknown_architectures_are_named_with_those_that_are_known() {
    let folder = Folder::model("bert").config(|c| {
        c.insert("model_type".into(), "warp".into());
    });
    rlx(["embed", "--model", &folder.arg(""), "a"]).failed(3, &["warp", "bert"]);
    rlx(["dump", "--model", &folder.arg(""), "--stage", "graph"]).failed(3, &["warp", "bert"]);
    let path = folder.path().join("warp.gguf");
    let mut metadata = MetadataBuilder::new();
    metadata.set("general.architecture", "warp");
    Writer::new(&path, metadata).unwrap().start().unwrap().finish().unwrap();
    generate(&folder.arg("warp.gguf")).failed(3, &["warp", "llama"]);
    limited(&["inspect", &folder.arg("warp.gguf")]).ok();
    // Known, but for something else.
    generate(&Folder::bert().arg("")).failed(3, &["bert"]);
    let llama = llama_gguf("cli-family");
    rlx(["embed", "--model", &llama.0.display().to_string(), "a"]).failed(3, &["llama"]);
}

#[test]
fn block_types_without_arithmetic_are_named() {
    let whole = llama_gguf("cli-types");
    let gguf = Gguf::open(&whole.0).unwrap();
    let folder = Folder::new();
    let path = folder.path().join("types.gguf");
    let mut metadata = MetadataBuilder::new();
    metadata.extend(gguf.metadata());
    let mut writer = Writer::new(&path, metadata).unwrap();
    let unknown = GgmlType::from_name("Q2_0").unwrap();
    let of = |name: &str| {
        if name == "blk.0.attn_q.weight" { unknown } else { GgmlType::from_name("F32").unwrap() }
    };
    for t in gguf.tensors() {
        writer.declare_as(t.name(), of(t.name()), t.shape()).unwrap();
    }
    let mut data = writer.start().unwrap();
    for t in gguf.tensors() {
        let bytes = of(t.name()).tensor_bytes(t.shape()).unwrap();
        data.tensor(t.name(), |sink| sink.write(&t.bytes()[..bytes])).unwrap();
    }
    data.finish().unwrap();
    generate(&folder.arg("types.gguf")).failed(3, &["Q2_0", "blk.0.attn_q.weight"]);
    let listed = limited(&["inspect", &folder.arg("types.gguf"), "--tensors"]).ok();
    assert!(listed.text().contains("Q2_0"));
}

#[test]
fn missing_and_misshapen_tensors_are_named() {
    let name = "encoder.layer.1.attention.self.query.weight";
    let missing = Folder::bert().tensors(|tensors| tensors.retain(|(n, _)| n != name));
    rlx(["embed", "--model", &missing.arg(""), "a"]).failed(3, &[name]);
    let misshapen = Folder::bert().tensors(|tensors| {
        let (_, tensor) = tensors.iter_mut().find(|(n, _)| n == name).unwrap();
        *tensor = Tensor::f32([95, 96], &vec![0.0; 95 * 96]).unwrap();
    });
    rlx(["embed", "--model", &misshapen.arg(""), "a"]).failed(3, &[name, "95", "96"]);
    let wide = Folder::bert().config(|c| {
        c.insert("hidden_size".into(), 128.into());
    });
    rlx(["embed", "--model", &wide.arg(""), "a"]).failed(3, &["128"]);
    let absurd = Folder::bert().config(|c| {
        c.insert("num_hidden_layers".into(), 4_000_000_000u64.into());
    });
    limited(&["embed", "--model", &absurd.arg(""), "a"]).failed(3, &["num_hidden_layers"]);
}

#[test]
fn hostile_files_beside_the_weights_are_named() {
    let embed = |folder: &Folder| limited(&["embed", "--model", &folder.arg(""), "a"]);
    for (tokenizer, word) in [
        ("charsmap-too-short", "precompiled_charsmap"),
        ("charsmap-leads-out-of-the-trie", "precompiled_charsmap"),
        ("fixed-length-of-0", "FixedLength"),
        ("template-token-not-listed", "special_tokens"),
        ("bpe-prefix-longer-than-the-token", "prefix"),
    ] {
        let json = std::fs::read(tests_of("rlx-models", &format!("corpus/{tokenizer}.json"))).unwrap();
        let run = embed(&Folder::bert().file("tokenizer.json", json));
        assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        run.failed(3, &["tokenizer.json", word]);
    }
    for name in ["modules.json", "tokenizer.json", "tokenizer_config.json", "config.json"] {
        let folder = Folder::bert();
        std::fs::File::create(folder.path().join(name)).unwrap().set_len(20 << 30).unwrap();
        embed(&folder).failed(3, &[name, "21474836480 bytes"]);
    }
    let modules = r#"[{"path": "../..", "type": "sentence_transformers.models.Transformer"}]"#;
    embed(&Folder::bert().file("modules.json", modules)).failed(3, &["modules.json", "../.."]);
}

#[cfg(unix)]
#[test]
fn pipes_are_not_waited_for() {
    let pipe = |folder: &Folder, name: &str| {
        let _ = std::fs::remove_file(folder.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap();
        assert!(made.success());
    };
    for name in ["modules.json", "config.json", "tokenizer.json", "other.safetensors"] {
        let folder = Folder::bert();
        if name == "other.safetensors" {
            std::fs::remove_file(folder.path().join("model.safetensors")).unwrap();
        }
        pipe(&folder, name);
        limited(&["embed", "--model", &folder.arg(""), "a"]).failed(3, &[name, "not a regular file"]);
    }
    let folder = Folder::new();
    pipe(&folder, "model.gguf");
    generate(&folder.arg("model.gguf")).failed(3, &["model.gguf", "not a regular file"]);
}

#[test]
fn what_cannot_be_written_fails_and_leaves_nothing() {
    let folder = Folder::bert();
    let out = folder.arg("no/such/out.gguf");
    rlx(["quantize", &folder.arg(""), &out, "--type", "q8_0"]).failed(1, &["out.gguf"]);
    rlx(["quantize", &folder.arg(""), &folder.arg("out.gguf"), "--type", "q9_z"])
        .failed(2, &["q9_z", "q8_0"]);
    rlx(["quantize", &folder.arg("no-model"), &folder.arg("out.gguf"), "--type", "q8_0"])
        .failed(3, &["no-model"]);
    assert!(!folder.path().join("out.gguf").exists());
    rlx(["devices", "--trace", &folder.arg("no/such/trace.json")]).failed(1, &["trace.json"]);
}
