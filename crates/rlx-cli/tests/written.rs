//! What is written, where, and over what it is not.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{Folder, command, finish, fixture, rlx};

/// All files below a folder, by name, with what they hold.
fn snapshot(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(snapshot(&path)),
            false => found.push((path.display().to_string(), std::fs::read(&path).unwrap())),
        }
    }
    found.sort();
    found
}

#[test]
fn quantize_does_not_write_over_what_it_reads() {
    let model = Folder::bert();
    let elsewhere = Folder::new();
    let before = snapshot(model.path());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(model.path().join("config.json"), elsewhere.path().join("link.gguf"))
            .unwrap();
        std::fs::hard_link(model.path().join("tokenizer.json"), elsewhere.path().join("hard.gguf")).unwrap();
    }
    let mut outputs = vec![
        model.arg("model.safetensors"),
        model.arg("./config.json"),
        model.arg("tokenizer.json"),
        model.arg("modules.json"),
        model.arg("1_Pooling/config.json"),
    ];
    if cfg!(unix) {
        outputs.extend([elsewhere.arg("link.gguf"), elsewhere.arg("hard.gguf")]);
    }
    for input in [model.arg(""), model.arg("model.safetensors")] {
        for output in &outputs {
            rlx(["quantize", &input, output, "--type", "q8_0"]).failed(2, &[output, "of the model"]);
        }
    }
    assert_eq!(before, snapshot(model.path()));
    // A file of its own may be beside the model, and be written again.
    for _ in 0..2 {
        rlx(["quantize", &model.arg(""), &model.arg("out.gguf"), "--type", "f16"]).ok();
    }
    let out = model.arg("out.gguf");
    rlx(["quantize", &out, &out, "--type", "q8_0"]).failed(2, &["out.gguf", "of the model"]);
}

#[test]
fn quantize_does_not_write_over_its_importance_matrix() {
    // One matrix with one column, in the older format.
    let matrix: Vec<u8> = [1, 1].iter().flat_map(|n: &i32| n.to_le_bytes()).chain(*b"w").collect();
    let matrix: Vec<u8> =
        matrix.into_iter().chain([1, 1, 0].iter().flat_map(|n: &i32| n.to_le_bytes())).collect();
    let folder = Folder::new().file("imatrix.gguf", &matrix);
    let (model, path) = (fixture("bert").display().to_string(), folder.arg("imatrix.gguf"));
    rlx(["quantize", &model, &path, "--type", "q8_0", "--imatrix", &path])
        .failed(2, &["imatrix.gguf", "importance matrix"]);
    assert_eq!(std::fs::read(folder.path().join("imatrix.gguf")).unwrap(), matrix);
}

/// `forward` of the model in `model` into `outputs`.
fn forward(model: &str, outputs: &str) -> common::Run {
    let inputs = fixture("bert").join("expected.safetensors").display().to_string();
    rlx(["forward", "--model", model, "--inputs", &inputs, "--outputs", outputs])
}

#[test]
fn forward_replaces_files_only_and_none_that_it_reads() {
    let model = Folder::bert();
    let before = snapshot(model.path());
    for output in
        [model.arg("model.safetensors"), model.arg("config.json"), model.arg("1_Pooling/config.json")]
    {
        forward(&model.arg(""), &output).failed(2, &[&output, "of the model"]);
    }
    assert_eq!(before, snapshot(model.path()));
    let inputs = Folder::new();
    let path = inputs.arg("in.safetensors");
    std::fs::copy(fixture("bert").join("expected.safetensors"), &path).unwrap();
    rlx(["forward", "--model", &model.arg(""), "--inputs", &path, "--outputs", &path])
        .failed(2, &["in.safetensors", "inputs"]);
    forward(&model.arg(""), &inputs.arg("")).failed(2, &["no file that could be replaced"]);
    // The error names what was asked for, and nothing is left behind.
    let nowhere = inputs.arg("no/folder/out.safetensors");
    let run = forward(&model.arg(""), &nowhere).failed(1, &[&nowhere]);
    assert!(!run.stderr.contains("partial"), "{}", run.stderr);
    assert_eq!(snapshot(inputs.path()).len(), 1);
    forward(&model.arg(""), &model.arg("out.safetensors")).ok();
    forward(&model.arg(""), &model.arg("out.safetensors")).ok();
}

#[test]
#[cfg(unix)]
fn forward_follows_links_and_leaves_pipes_alone() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let (model, folder) = (fixture("bert").display().to_string(), Folder::new().file("real", "old"));
    std::os::unix::fs::symlink(folder.path().join("real"), folder.path().join("link")).unwrap();
    forward(&model, &folder.arg("link")).ok();
    assert!(folder.path().join("link").is_symlink());
    assert_eq!(common::read_tensors(&folder.path().join("real")).len(), 1);
    let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode();
    forward(&model, &folder.arg("new")).ok();
    std::fs::write(folder.path().join("any"), "").unwrap();
    assert_eq!(mode("new"), mode("any"));
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    forward(&model, &folder.arg("fifo")).failed(2, &["fifo", "no file that could be replaced"]);
    assert!(fifo.metadata().unwrap().file_type().is_fifo());
}

#[test]
fn a_trace_replaces_traces_only() {
    let model = Folder::bert();
    let before = snapshot(model.path());
    for name in ["model.safetensors", "config.json", "modules.json"] {
        let path = model.arg(name);
        rlx(["embed", "--model", &model.arg(""), "a", "--trace", &path]).failed(2, &[name, "no trace"]);
    }
    assert_eq!(before, snapshot(model.path()));
    for _ in 0..2 {
        rlx(["embed", "--model", &model.arg(""), "a", "--trace", &model.arg("trace.json")]).ok();
    }
    rlx(["devices", "--trace", &model.arg("trace.json")]).ok();
    rlx(["devices", "--trace", &model.arg("")]).failed(2, &["no file that could be replaced"]);
}

#[test]
fn results_do_not_replace_the_trace() {
    let (model, folder) = (fixture("bert").display().to_string(), Folder::new());
    let inputs = fixture("bert").join("expected.safetensors").display().to_string();
    let both = folder.arg("both");
    for line in [
        ["forward", "--model", &model, "--inputs", &inputs, "--outputs", &both].as_slice(),
        &["quantize", &model, &both, "--type", "f32"],
    ] {
        rlx([line, &["--trace", &both]].concat()).failed(2, &["both", "--trace"]);
        let trace: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("both")).unwrap()).unwrap();
        assert!(trace.is_array(), "{trace}");
    }
}

#[test]
fn quantize_takes_the_threads_that_it_is_given() {
    let folder = Folder::new();
    let (model, out) = (fixture("bert").display().to_string(), folder.arg("out.gguf"));
    let mut files = Vec::new();
    for threads in ["1", "3", "0"] {
        rlx(["quantize", &model, &out, "--type", "q8_0", "-t", threads]).ok();
        files.push(std::fs::read(&out).unwrap());
    }
    assert!(files.windows(2).all(|pair| pair[0] == pair[1]));
    rlx(["quantize", &model, &out, "--type", "q8_0", "-t", "100000"]).failed(2, &["100000 threads"]);
}

#[test]
fn what_a_second_quantisation_does_is_said_in_a_line() {
    let folder = Folder::new();
    let (model, q8_0, q4_0) =
        (fixture("bert").display().to_string(), folder.arg("q8_0.gguf"), folder.arg("q4_0.gguf"));
    let first = rlx(["quantize", &model, &q8_0, "--type", "q8_0"]).ok();
    assert!(!first.stderr.contains("quantised before"), "{}", first.stderr);
    let second = rlx(["quantize", &q8_0, &q4_0, "--type", "q4_0"]).ok();
    let told: Vec<&str> = second.stderr.lines().filter(|line| line.contains("quantised before")).collect();
    assert!(told.len() == 1 && told[0].contains("in q8_0"), "{}", second.stderr);
    // Rows of 100 elements: one line for all of them, each named where more is asked for.
    let about = |stderr: &str| stderr.lines().filter(|line| line.contains("100 elements")).count();
    assert_eq!(about(&second.stderr), 1, "{}", second.stderr);
    let more = rlx(["quantize", &q8_0, &q4_0, "--type", "q4_0", "-v"]).ok();
    assert!(about(&more.stderr) > 2 && more.stderr.contains("blk.0.ffn_down.weight"), "{}", more.stderr);
}

#[test]
fn the_name_of_the_shipped_model_means_that_one_everywhere() {
    let folder = Folder::new();
    let copy = folder.path().join("all-MiniLM-L6-v2");
    std::fs::create_dir(&copy).unwrap();
    let bert = Folder::bert();
    for file in ["config.json", "model.safetensors", "tokenizer.json"] {
        std::fs::copy(bert.path().join(file), copy.join(file)).unwrap();
    }
    let here = |args: &[&str]| finish(command().args(args).current_dir(folder.path()));
    let dim = |name: &str| {
        let run = here(&["embed", "--model", name, "a"]).ok();
        common::vector(&run.json_lines()[0]).len()
    };
    assert_eq!((dim("all-MiniLM-L6-v2"), dim("./all-MiniLM-L6-v2")), (384, 96));
    let sizes = |name: &str| here(&["inspect", name, "--format", "json"]).ok().json()["tensor_count"].clone();
    assert_ne!(sizes("all-MiniLM-L6-v2"), sizes("./all-MiniLM-L6-v2"));
    here(&["quantize", "all-MiniLM-L6-v2", "out.gguf", "--type", "q8_0"]).ok();
    assert_eq!(sizes("all-MiniLM-L6-v2"), sizes("out.gguf"));
    assert_eq!(dim("out.gguf"), 384);
}
