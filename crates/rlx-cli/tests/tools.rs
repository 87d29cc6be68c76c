//! `rlx inspect`, `quantize`, `dump`, `devices`, `explain`, `bench`, `settings`, and what all commands share.
#![allow(clippy::unwrap_used)]

mod common;

use common::models::llama_gguf;
use common::{Folder, command, cosine, finish, fixture, rlx, tests_of, vector};
use rlx::ir::OpSet;
use rlx::ir::text::parse;

fn path(name: &str) -> String {
    fixture(name).display().to_string()
}

#[test]
fn inspect_shows_what_a_folder_holds_and_how_it_pools() {
    let folder = Folder::bert();
    let report = rlx(["inspect", &folder.arg(""), "--tensors", "--metadata", "--format", "json"]).ok().json();
    assert_eq!((&report["architecture"], &report["supported"]), (&"bert".into(), &true.into()));
    assert_eq!(
        (&report["sizes"]["hidden_size"], &report["metadata"]["vocab_size"]),
        (&96.into(), &314.into())
    );
    assert_eq!(report["embedding"]["pooling"][0], "mean");
    assert!(report["embedding"]["pooling_from"].as_str().unwrap().contains("1_Pooling"));
    assert_eq!(report["embedding"]["normalize"], true);
    assert_eq!(report["tensor_count"], report["tensors"].as_array().unwrap().len());
    let text = rlx(["inspect", &folder.arg("")]).ok();
    assert!(text.text().contains("pooling = mean (") && text.text().contains("query"), "{}", text.text());
    assert!(text.text().contains("(config_sentence_transformers.json)"), "{}", text.text());
    assert_eq!((&report["embedding"]["positions"], &report["embedding"]["limit"]), (&64.into(), &64.into()));
    assert!(!text.text().contains("encoder.layer.0"));
    let file = rlx(["inspect", &folder.arg("model.safetensors"), "--tensors"]).ok();
    assert!(file.text().contains("encoder.layer.0.attention.self.query.weight"));
}

#[test]
fn inspect_counts_the_bytes_of_types_that_cannot_be_run() {
    let path = tests_of("rlx-runtime", "corpus/unknown-dtype.safetensors").display().to_string();
    let report = rlx(["inspect", &path, "--tensors", "--format", "json"]).ok().json();
    assert_eq!(report["types"]["f8_e4m3"], serde_json::json!({ "tensors": 1, "bytes": 4 }));
    assert_eq!((&report["tensors"][0]["type"], &report["tensor_bytes"]), (&"f8_e4m3".into(), &4.into()));
    assert!(rlx(["inspect", &path]).ok().text().contains("type f8_e4m3  1 tensors, 4 B"));
}

#[test]
fn inspect_shows_what_a_gguf_file_holds() {
    let gguf = llama_gguf("cli-inspect");
    let file = gguf.0.display().to_string();
    let report = rlx(["inspect", &file, "--metadata", "--format", "json"]).ok().json();
    assert_eq!((&report["architecture"], &report["sizes"]["block_count"]), (&"llama".into(), &3.into()));
    assert_eq!(report["metadata"]["tokenizer.ggml.tokens"].as_array().unwrap().len(), 314);
    assert!(report.get("tensors").is_none() && report["embedding"].is_null());
    let text = rlx(["inspect", &file, "--metadata", "--tensors"]).ok();
    assert!(text.text().contains("314 items") && text.text().contains("blk.2.ffn_down.weight"));
    let shipped = rlx(["inspect", "all-MiniLM-L6-v2"]).ok();
    assert!(shipped.text().contains("pooling = mean"), "{}", shipped.text());
}

#[test]
fn a_quantised_model_gives_nearly_the_same_vectors() {
    let folder = Folder::bert();
    let embed = |model: &str| vector(&rlx(["embed", "--model", model, "a cat"]).ok().json_lines()[0]);
    let original = embed(&folder.arg(""));
    for (ty, at_least) in [("f32", 0.999_999), ("F16", 0.9999), ("q8_0", 0.999)] {
        let out = folder.arg("out.gguf");
        let report = rlx(["quantize", &folder.arg(""), &out, "--type", ty, "--format", "json"]).ok();
        assert!(report.json()["tensors"].as_u64().unwrap() > 30);
        if ty == "q8_0" {
            // Rows of 100 elements have no whole blocks of 32: said, and f16 taken.
            assert!(report.stderr.contains("100") && report.stderr.contains("f16"), "{}", report.stderr);
            assert!(!report.json()["fallbacks"].as_array().unwrap().is_empty());
        }
        let cosine = cosine(&embed(&out), &original);
        assert!(cosine > at_least, "{ty}: {cosine}");
        std::fs::remove_file(out).unwrap();
    }
}

#[test]
fn what_dump_prints_parses_again() {
    for name in ["bert", "nomic_bert", "modernbert", "llama", "mistral"] {
        let dump =
            |stage: &str| rlx(["dump", "--model", &path(name), "--stage", stage]).ok().text().to_owned();
        let (graph, fused) = (dump("graph"), dump("fused"));
        for text in [&graph, &fused] {
            let parsed = parse(text, &OpSet::builtin()).unwrap();
            rlx::ir::verify(&parsed).unwrap();
            assert_eq!(parsed.to_string(), *text);
        }
        // Its builder emits what passes would make.
        assert_eq!(graph == fused, name == "modernbert", "{name}");
        let plan = dump("plan");
        assert!(plan.starts_with("plan @") && plan.contains("arena"), "{plan}");
    }
}

/// The files that the CPU backend runs beside the interpreter; `BLESS=1` writes what is printed today.
#[test]
fn what_dump_prints_is_what_the_filetests_run() {
    for (name, stage) in [("bert", "graph"), ("bert", "fused"), ("llama", "graph"), ("llama", "fused")] {
        let args = ["dump", "--model", &path(name), "--stage", stage, "--device", "cpu"];
        let dump = rlx(args).ok().text().to_owned();
        let file = tests_of("rlx-cpu", &format!("filetests/run/{name}_{stage}.rlx"));
        let text = std::fs::read_to_string(&file).unwrap();
        let start = text.find("graph @").unwrap();
        let end = start + text[start..].find("\n}\n").unwrap() + 3;
        if std::env::var_os("BLESS").is_some_and(|v| v == "1") {
            std::fs::write(&file, [&text[..start], &dump, &text[end..]].concat()).unwrap();
        } else {
            let place = file.display();
            assert!(text[start..end] == dump, "{place}: BLESS=1 writes what `rlx dump` prints now:\n{dump}");
        }
    }
}

#[test]
fn devices_are_listed_with_what_is_missing() {
    let devices = rlx(["devices", "--threads", "1", "--format", "json"]).ok().json();
    let cpu = devices.as_array().unwrap().iter().find(|d| d["backend"] == "cpu").unwrap();
    assert_eq!((&cpu["available"], &cpu["parallelism"]), (&true.into(), &1.into()));
    let cuda = devices.as_array().unwrap().iter().find(|d| d["backend"] == "cuda").unwrap();
    assert!(cuda["available"] == false && cuda["reason"].is_string());
    let metal = devices.as_array().unwrap().iter().find(|d| d["backend"] == "metal").unwrap();
    assert_eq!(metal["available"] == false, metal["reason"].is_string());
    if cfg!(not(target_os = "macos")) {
        assert_eq!(metal["reason"], "this is not an Apple system");
    }
    let text = rlx(["devices"]).ok();
    assert!(text.text().contains("cpu: ") && text.text().contains("cuda: not here"), "{}", text.text());
}

#[test]
fn a_variable_that_is_no_setting_is_pointed_out() {
    let run = finish(command().args(["settings"]).env("RLX_THREAD", "3"));
    assert!(run.stderr.contains("RLX_THREAD is set"), "{}", run.stderr);
    run.ok();
}

#[test]
fn more_threads_than_can_be_are_refused() {
    rlx(["devices", "--threads", "100000"]).failed(2, &["100000 CPU threads", "1024"]);
}

#[test]
fn settings_say_where_their_values_come_from() {
    let args = ["settings", "--strategy", "thunks", "--format", "json"];
    let rows = finish(command().args(args).env("RLX_THREADS", "3")).ok().json();
    let of = |name: &str| rows.as_array().unwrap().iter().find(|r| r["name"] == name).unwrap().clone();
    assert_eq!(
        (&of("RLX_THREADS")["value"], &of("RLX_THREADS")["origin"]),
        (&"3".into(), &"environment".into())
    );
    assert_eq!(of("RLX_STRATEGY")["origin"], "command line");
    assert_eq!(
        (&of("RLX_DEVICE")["value"], &of("RLX_DEVICE")["origin"]),
        (&"auto".into(), &"default".into())
    );
    let known = rlx::ir::env::SETTINGS.len() + rlx::models::hub::VARIABLES.len();
    assert_eq!(rows.as_array().unwrap().len(), known);
    let text = rlx(["settings"]).ok();
    assert!(rlx::ir::env::SETTINGS.iter().all(|s| text.text().contains(s.name)));
    finish(command().arg("settings").env("RLX_DEVICE", "toaster")).failed(2, &["RLX_DEVICE", "toaster"]);
}

#[test]
fn explain_tells_each_step_with_its_time() {
    for (name, region) in [("bert", "bert_layer"), ("llama", "attention_block")] {
        let args = ["explain", "--model", &path(name), "--batch", "2", "--seq", "5", "--format", "json"];
        let report = rlx(args).ok().json();
        assert!(report["regions"].as_array().unwrap().iter().any(|r| r["region"] == region), "{report}");
        let steps = report["steps"].as_array().unwrap();
        assert!(steps.len() > 10);
        let share: f64 = steps.iter().map(|s| s["share"].as_f64().unwrap()).sum();
        assert!((share - 1.0).abs() < 1e-6, "{share}");
        assert!(steps.iter().all(|s| !s["kernel"].as_str().unwrap().is_empty()));
        assert!(steps.iter().any(|s| s["flops"].as_u64().unwrap() > 0));
        assert!(
            report["passes"].as_array().unwrap().iter().any(|p| !p["fired"].as_array().unwrap().is_empty())
        );
    }
    let text = rlx(["explain", "--model", &path("bert")]).ok();
    for word in ["kernel", "fired", "bert_layer"] {
        assert!(text.text().contains(word), "{}", text.text());
    }
    rlx(["explain", "--model", &path("bert"), "--seq", "65"]).failed(2, &["65", "64"]);
    rlx(["explain", "--model", &path("bert"), "--batch", "0"]).failed(2, &["--batch"]);
}

#[test]
fn bench_prints_one_object_with_its_keys() {
    let args = ["bench", "encode", "--model", &path("bert"), "--batch", "2", "--seq", "8", "--iters", "3"];
    let run = rlx(args).ok();
    assert_eq!(run.text().lines().count(), 1);
    let report = run.json();
    let mut keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    keys.sort();
    let wanted = [
        "bind_us",
        "compile_ms",
        "load_ms",
        "max_ms",
        "median_ms",
        "min_ms",
        "peak_rss_bytes",
        "tokens_per_s",
    ];
    assert_eq!(keys, wanted);
    let of = |key: &str| report[key].as_f64().unwrap();
    assert!(0.0 < of("min_ms") && of("min_ms") <= of("median_ms") && of("median_ms") <= of("max_ms"));
    if cfg!(target_os = "linux") {
        assert!(of("peak_rss_bytes") > 1e6);
    }

    let args = ["bench", "decode", "--model", &path("llama"), "--prompt-tokens", "9", "--gen-tokens", "4"];
    let report = rlx(args).ok().json();
    let mut keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    keys.sort();
    let wanted = [
        "compile_ms",
        "decode_tok_per_s",
        "first_token_ms",
        "load_ms",
        "peak_rss_bytes",
        "prefill_tok_per_s",
    ];
    assert_eq!(keys, wanted);
    rlx(["bench", "encode", "--model", &path("llama")]).failed(3, &["bench decode"]);
    rlx(["bench", "decode", "--model", &path("bert")]).failed(3, &["bert"]);
    rlx(["bench", "decode", "--model", &path("llama"), "--gen-tokens", "100000"]).failed(2, &["256"]);
}

#[test]
fn a_trace_holds_spans_of_load_compile_each_pass_and_run() {
    let folder = Folder::bert();
    let (model, decoder) = (folder.arg(""), llama_gguf("cli-trace"));
    let (inputs, outputs) = (folder.arg("in.safetensors"), folder.arg("out.safetensors"));
    let expected = fixture("bert").join("expected.safetensors").display().to_string();
    std::fs::copy(expected, &inputs).unwrap();
    let decoder = decoder.0.display().to_string();
    let forward = ["forward", "-m", &model, "--inputs", &inputs, "--outputs", &outputs];
    let bench = ["bench", "encode", "-m", &model, "--seq", "8", "--iters", "1"];
    let explain = ["explain", "-m", &model, "--seq", "8"];
    for line in [
        &["embed", "-m", &model, "a"][..],
        &["generate", "-m", &decoder, "-p", "a", "-n", "2"],
        &["forward", "-m", &decoder, "--inputs", &inputs, "--outputs", &outputs],
        &forward,
        &bench,
        &explain,
    ] {
        let trace = folder.arg("trace.json");
        rlx([line, &["--trace", &trace]].concat()).ok();
        let events: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&trace).unwrap()).unwrap();
        let place = |phase: &str, name: &str| {
            let found = events.iter().position(|e| e["ph"] == phase && e["name"] == name);
            found.unwrap_or_else(|| panic!("{line:?}: {phase} of {name}"))
        };
        let count = |phase: &str| events.iter().filter(|e| e["ph"] == phase).count();
        assert_eq!(count("B"), count("E"), "{line:?}");
        let inside = |outer: &str, inner: &str| {
            assert!(place("B", outer) < place("B", inner), "{line:?}: {inner} in {outer}");
            assert!(place("E", inner) < place("E", outer), "{line:?}: {inner} in {outer}");
        };
        inside("load", "compile");
        for stage in rlx::compile::STAGES {
            inside("compile", &format!("pass {}", stage.name));
        }
        assert!(place("E", "load") < place("B", "run"), "{line:?}");
        assert!(events.windows(2).all(|w| w[0]["ts"].as_f64() <= w[1]["ts"].as_f64()));
    }
}

#[test]
fn a_type_that_nothing_computes_in_is_said() {
    let folder = Folder::bert();
    let model = folder.arg("");
    let embed = |types: &[&str]| rlx([&["embed", "-m", &model, "a cat"], types].concat()).ok();
    let float = embed(&["--compute", "int8"]);
    assert!(
        float.stderr.contains("warning: int8 was asked for, but nothing computes in it"),
        "{}",
        float.stderr
    );
    assert!(float.stderr.contains("the weight is f32") && float.stderr.contains("q8_0"), "{}", float.stderr);
    assert_eq!(vector(&float.json_lines()[0]), vector(&embed(&[]).json_lines()[0]));
    for types in [&["--dtype", "q8_0"][..], &["--compute", "f16"], &[]] {
        let out = embed(types);
        assert!(!out.stderr.contains("nothing computes"), "{types:?}: {}", out.stderr);
    }
}

#[cfg(unix)]
#[test]
fn a_setting_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let bytes = std::ffi::OsStr::from_bytes(b"\xff");
    for name in ["RLX_DEVICE", "RLX_THREADS"] {
        finish(command().arg("settings").env(name, bytes)).failed(2, &[name]);
    }
    let name = std::ffi::OsStr::from_bytes(b"RLX_\xff");
    assert!(
        finish(command().arg("settings").env(name, "1")).ok().stderr.contains("no setting has that name")
    );
    // What RLX does not read is no setting.
    let old = finish(command().arg("settings").env("RLX_CACHE_DIR", "/tmp")).ok();
    assert!(old.stderr.contains("RLX_CACHE_DIR is set, but no setting has that name"), "{}", old.stderr);
}

#[test]
fn help_lists_what_is_there_and_nothing_else() {
    let help = rlx(["--help"]).ok();
    for command in [
        "embed", "generate", "chat", "forward", "inspect", "quantize", "pull", "dump", "devices", "explain",
        "bench", "settings",
    ] {
        assert!(help.text().contains(&format!("\n  {command} ")), "{command}: {}", help.text());
        assert!(rlx([command, "--help"]).ok().text().contains("Usage: rlx"));
    }
    assert!(rlx(["forward", "--help"]).ok().text().contains("stay in f32"));
    for command in ["serve", "calibrate", "help"] {
        assert!(!help.text().contains(&format!("\n  {command} ")), "{command}");
        rlx([command]).failed(2, &[command]);
    }
    rlx([""; 0]).failed(2, &["a command is missing"]);
    assert!(rlx(["--version"]).ok().text().starts_with("rlx "));
}

#[test]
fn a_command_says_which_formats_it_has() {
    rlx(["devices", "--format", "npy"]).failed(2, &["npy", "text, json"]);
    rlx(["dump", "--model", &path("bert"), "--stage", "graph", "--format", "json"]).failed(2, &["json"]);
    rlx(["dump", "--model", &path("bert"), "--stage", "final"]).failed(2, &["final", "fused"]);
}

#[test]
#[cfg(unix)]
fn files_are_not_written_over_what_is_no_file() {
    let model = fixture("bert").display().to_string();
    let folder = Folder::new();
    let quantize = |out: &str| {
        let stdout = std::fs::File::create(folder.path().join("stdout")).unwrap();
        let args = ["quantize", &model, out, "--type", "f16"];
        let mut run = finish(command().current_dir(folder.path()).args(args).stdout(stdout));
        run.stdout = std::fs::read(folder.path().join("stdout")).unwrap();
        run
    };
    for out in ["-", "stdout"] {
        let run = quantize(out).failed(2, &["stdout", "name a file"]);
        assert!(run.stdout.is_empty() && !folder.path().join("-").exists());
    }
    quantize("/dev/null").failed(2, &["/dev/null", "no file that could be replaced"]);
    quantize("out.gguf").ok();
}

#[test]
#[cfg(target_os = "linux")]
fn help_that_cannot_be_written_is_an_error() {
    for args in [&["--help"][..], &["--version"], &["embed", "--help"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut child =
            command().args(args).stdout(full).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let mut stderr = String::new();
        std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut stderr).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{args:?}");
        assert!(stderr.starts_with("error: stdout: "), "{stderr}");
    }
}
