//! `rlx pull`, and models by hub id, with a hub on this machine.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../rlx-models/tests/common/http_server.rs"]
mod http_server;

use std::process::Command;

use common::{Folder, Run, command, finish, fixture, vector};
use http_server::{COMMIT, Reply, RepoFile, Server, hub_reply};

/// The files of the tiny BERT.
fn bert() -> Vec<RepoFile> {
    let folder = Folder::bert();
    let names = [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "modules.json",
        "1_Pooling/config.json",
        "config_sentence_transformers.json",
    ];
    let file =
        |name| RepoFile { name, bytes: std::fs::read(folder.path().join(name)).unwrap(), sha256: None };
    names.into_iter().map(file).collect()
}

fn hub() -> Server {
    let files = bert();
    Server::start(move |request| hub_reply(request, "org/bert", &files, ""))
}

/// The binary with this hub and an empty cache.
fn with(hub: &Server, cache: &Folder) -> Command {
    let mut command = command();
    for name in [
        "ALL_PROXY",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "all_proxy",
        "https_proxy",
        "http_proxy",
        "SSL_CERT_FILE",
        "TRANSFORMERS_OFFLINE",
        "HUGGINGFACE_HUB_CACHE",
        "HUGGING_FACE_HUB_TOKEN",
    ] {
        command.env_remove(name);
    }
    command.env("HF_ENDPOINT", &hub.url).env("HF_HOME", cache.path());
    command
}

fn run(hub: &Server, cache: &Folder, args: &[&str]) -> Run {
    finish(with(hub, cache).args(args))
}

#[test]
fn pull_prints_where_the_model_is() {
    let (hub, cache) = (hub(), Folder::new());
    let snapshot = cache.path().join("hub/models--org--bert/snapshots").join(COMMIT);
    let pulled = run(&hub, &cache, &["pull", "org/bert"]).ok();
    assert_eq!(pulled.text().trim_end(), snapshot.display().to_string());
    // No bar where nobody watches.
    assert_eq!(pulled.stderr, "");
    hub.forget();
    let again = run(&hub, &cache, &["pull", "org/bert", "--format", "json"]).ok().json();
    assert_eq!((&again["id"], &again["commit"]), (&"org/bert".into(), &COMMIT.into()));
    assert_eq!(again["path"], snapshot.display().to_string());
    assert_eq!((again["files"].as_array().unwrap().len(), &again["downloaded_bytes"]), (6, &0.into()));
    let total: u64 = again["files"].as_array().unwrap().iter().map(|f| f["bytes"].as_u64().unwrap()).sum();
    assert_eq!((&again["bytes"], total), (&total.into(), bert().iter().map(|f| f.bytes.len() as u64).sum()));
    assert_eq!(hub.lines().len(), 1);
    let file = run(&hub, &cache, &["pull", "org/bert:config.json"]).ok();
    assert_eq!(file.text().trim_end(), snapshot.join("config.json").display().to_string());
}

#[test]
fn pull_says_what_is_wrong() {
    let (hub, cache) = (hub(), Folder::new());
    for wrong in ["bert", "./bert", "a/b/c", ""] {
        run(&hub, &cache, &["pull", wrong]).failed(2, &["org/name"]);
    }
    run(&hub, &cache, &["pull"]).failed(2, &["ORG/NAME"]);
    run(&hub, &cache, &["pull", "org/bert", "--format", "npy"]).failed(2, &["npy", "text, json"]);
    run(&hub, &cache, &["pull", "org/bort"]).failed(3, &["org/bort", "no such model"]);
    run(&hub, &cache, &["pull", "org/bert:confg.json"]).failed(3, &["confg.json", "config.json"]);
    hub.forget();
    let offline = finish(with(&hub, &cache).args(["pull", "org/bert"]).env("HF_HUB_OFFLINE", "1"));
    offline.failed(3, &["org/bert", &cache.arg("hub"), "HF_HUB_OFFLINE"]);
    assert!(hub.log().is_empty());
    let nowhere =
        finish(with(&hub, &cache).args(["pull", "org/bert"]).env("HF_ENDPOINT", "http://127.0.0.1:1"));
    nowhere.failed(1, &["127.0.0.1:1", "cannot be reached"]);
    let endpoint = finish(with(&hub, &cache).args(["pull", "org/bert"]).env("HF_ENDPOINT", "hub.example"));
    endpoint.failed(2, &["HF_ENDPOINT", "hub.example"]);
    let refused = Server::start(|_| Reply::new(401, ""));
    run(&refused, &cache, &["pull", "org/bert"]).failed(3, &["401", "HF_TOKEN"]);
}

#[test]
fn a_command_downloads_a_model_that_is_not_in_the_cache() {
    let (hub, cache) = (hub(), Folder::new());
    let embed = |args: &[&str]| {
        let mut command = with(&hub, &cache);
        finish(command.args(["embed", "--model", "org/bert", "a cat"]).args(args)).ok()
    };
    let first = embed(&[]);
    // One line says that bytes come.
    assert!(first.stderr.contains("org/bert") && first.stderr.contains("downloading"), "{}", first.stderr);
    assert_eq!(first.stderr.lines().count(), 1);
    hub.forget();
    let second = embed(&[]);
    assert_eq!((second.stderr.as_str(), hub.log().len()), ("", 0));
    let folder = Folder::bert();
    let local = common::rlx(["embed", "--model", &folder.arg(""), "a cat"]).ok();
    for run in [first, second] {
        assert_eq!(vector(&run.json_lines()[0]), vector(&local.json_lines()[0]));
    }
    let report = run(&hub, &cache, &["inspect", "org/bert", "--format", "json"]).ok().json();
    assert_eq!(report["architecture"], "bert");
    let out = cache.arg("out.gguf");
    run(&hub, &cache, &["quantize", "org/bert", &out, "--type", "f16"]).ok();
    assert!(hub.log().is_empty());
}

#[test]
fn a_model_that_nobody_has_is_missing() {
    let (hub, cache) = (hub(), Folder::new());
    let args = ["embed", "--model", "org/none", "a"];
    run(&hub, &cache, &args).failed(3, &["org/none: no such file", "no such model"]);
    finish(with(&hub, &cache).args(args).env("HF_ENDPOINT", "http://127.0.0.1:1"))
        .failed(3, &["org/none: no such file", "127.0.0.1:1"]);
    hub.forget();
    finish(with(&hub, &cache).args(args).env("HF_HUB_OFFLINE", "1"))
        .failed(3, &["org/none", "HF_HUB_OFFLINE"]);
    // A path that is there is a path.
    let folder = Folder::new()
        .file("org/none/config.json", std::fs::read(fixture("bert").join("config.json")).unwrap());
    let local = finish(with(&hub, &cache).args(args).current_dir(folder.path()));
    assert!(hub.log().is_empty() && local.code == 3, "{}", local.stderr);
}

#[test]
fn a_cache_that_others_have_filled_is_completed() {
    let (hub, cache) = (hub(), Folder::new());
    let snapshot = format!("hub/models--org--bert/snapshots/{COMMIT}");
    let file = |name: &str| bert().into_iter().find(|f| f.name == name).unwrap().bytes;
    let mut cache = cache.file("hub/models--org--bert/refs/main", COMMIT);
    for name in ["config.json", "model.safetensors", "tokenizer.json"] {
        cache = cache.file(&format!("{snapshot}/{name}"), file(name));
    }
    // Without modules.json the vectors would be pooled by guess.
    let args = ["embed", "--model", "org/bert", "a cat"];
    let offline = finish(with(&hub, &cache).args(args).env("HF_HUB_OFFLINE", "1")).ok();
    assert!(offline.stderr.contains("modules.json"), "{}", offline.stderr);
    assert!(hub.log().is_empty());
    run(&hub, &cache, &args).ok();
    assert!(cache.path().join(&snapshot).join("1_Pooling/config.json").is_file());
    assert!(hub.lines().iter().all(|l| !l.contains("model.safetensors")));
}

#[test]
fn a_token_that_cannot_be_read_stops_no_public_model() {
    let (hub, cache) = (hub(), Folder::new());
    // A folder cannot be read, whoever asks.
    std::fs::create_dir(cache.path().join("token")).unwrap();
    let pulled = run(&hub, &cache, &["pull", "org/bert"]).ok();
    assert!(pulled.stderr.contains(&cache.arg("token")), "{}", pulled.stderr);
    assert!(pulled.stderr.contains("without a token"), "{}", pulled.stderr);
}

#[test]
fn variables_that_stand_for_nothing_are_told_and_not_shown_as_in_force() {
    let mut command = command();
    command.args(["settings", "--format", "json"]);
    let run = finish(command.env("HF_HUB_OFFLINE", "maybe").env("HF_HUB_ETAG_TIMEOUT", "abc")).ok();
    let rows = run.json();
    let value =
        |name: &str| rows.as_array().unwrap().iter().find(|r| r["name"] == name).unwrap()["value"].clone();
    assert_eq!((value("HF_HUB_OFFLINE"), value("HF_HUB_ETAG_TIMEOUT")), ("0".into(), "10".into()));
    for word in ["HF_HUB_OFFLINE is \"maybe\"", "HF_HUB_ETAG_TIMEOUT is \"abc\""] {
        assert!(run.stderr.contains(word), "{}", run.stderr);
    }
}

#[test]
fn settings_show_the_variables_of_the_hub() {
    let (hub, cache) = (hub(), Folder::new());
    let mut command = with(&hub, &cache);
    let rows = finish(command.args(["settings", "--format", "json"]).env("HF_TOKEN", "hf_secret")).ok();
    assert!(!rows.text().contains("hf_secret"));
    let rows = rows.json();
    let of = |name: &str| rows.as_array().unwrap().iter().find(|r| r["name"] == name).unwrap().clone();
    assert_eq!(
        (&of("HF_TOKEN")["value"], &of("HF_TOKEN")["origin"]),
        (&"(set)".into(), &"environment".into())
    );
    assert_eq!(of("HF_HUB_CACHE")["value"], cache.arg("hub"));
    assert_eq!(
        (&of("HF_ENDPOINT")["value"], &of("HF_HUB_OFFLINE")["origin"]),
        (&hub.url.as_str().into(), &"default".into())
    );
}
