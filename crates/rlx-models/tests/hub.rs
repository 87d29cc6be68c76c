//! Downloads from a hub on this machine that redirects, breaks off, refuses and lies.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "common/http_server.rs"]
mod http_server;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_server::{COMMIT, Reply, RepoFile, Request, Send, Server, cdn_reply, hub_reply};
use rlx_ir::ErrorKind;
use rlx_models::hub::{Hub, HubId, HubOptions, NETWORK, Pulled, TEXT, Token, VECTORS};
use rlx_models::{Error, Result};
use sha2::{Digest, Sha256};

const REPO: &str = "org/name";

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn small(name: &'static str, text: &str) -> RepoFile {
    RepoFile { name, bytes: text.into(), sha256: None }
}

/// So many bytes that are not all alike.
fn large(name: &'static str, bytes: usize) -> RepoFile {
    let bytes: Vec<u8> = (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    RepoFile { name, sha256: Some(sha256(&bytes)), bytes }
}

fn bert() -> Vec<RepoFile> {
    vec![
        small("README.md", "read me"),
        small("config.json", "{}"),
        small("tokenizer.json", "{ }"),
        small(
            "modules.json",
            r#"[{"path":""},{"path":"1_Pooling"},{"path":"2_WeightedLayer"},{"path":"3_Normalize","type":"s.Normalize"}]"#,
        ),
        small("1_Pooling/config.json", "{  }"),
        large("model.safetensors", 700_000),
        large("pytorch_model.bin", 10),
    ]
}

/// A hub, the server of its large files, and a cache.
struct World {
    hub: Server,
    cdn: Server,
    cache: PathBuf,
}

type Hook = Box<dyn Fn(&Request) -> Option<Reply> + std::marker::Send + Sync>;

impl World {
    /// With these files; `hub` and `cdn` may answer a request in another way.
    fn new(files: Vec<RepoFile>, hub: Hook, cdn: Hook) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("rlx-hub-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let cdn_files = files.clone();
        let cdn = Server::start(move |r| cdn(r).unwrap_or_else(|| cdn_reply(r, &cdn_files)));
        let place = cdn.url.clone();
        let hub = Server::start(move |r| hub(r).unwrap_or_else(|| hub_reply(r, REPO, &files, &place)));
        Self { hub, cdn, cache: std::env::temp_dir().join(name) }
    }

    fn plain(files: Vec<RepoFile>) -> Self {
        Self::new(files, Box::new(|_| None), Box::new(|_| None))
    }

    fn with_hub(
        files: Vec<RepoFile>,
        hub: impl Fn(&Request) -> Option<Reply> + std::marker::Send + Sync + 'static,
    ) -> Self {
        Self::new(files, Box::new(hub), Box::new(|_| None))
    }

    fn with_cdn(
        files: Vec<RepoFile>,
        cdn: impl Fn(&Request) -> Option<Reply> + std::marker::Send + Sync + 'static,
    ) -> Self {
        Self::new(files, Box::new(|_| None), Box::new(cdn))
    }

    fn options(&self) -> HubOptions {
        HubOptions {
            cache: Some(self.cache.clone()),
            endpoint: self.hub.url.clone(),
            token: Token::new("hf_secret"),
            retry_wait: Duration::from_millis(1),
            ..HubOptions::from_lookup(|_| None)
        }
    }

    fn pull(&self, id: &str) -> Result<Pulled> {
        Hub::new(self.options()).pull(&HubId::parse(id).unwrap(), &|_, _| {})
    }

    fn repo(&self, name: &str) -> PathBuf {
        self.cache.join("models--org--name").join(name)
    }

    fn snapshot(&self, name: &str) -> PathBuf {
        self.repo("snapshots").join(COMMIT).join(name)
    }

    /// The names in `blobs`.
    fn blobs(&self) -> Vec<String> {
        names(&self.repo("blobs"))
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.repo(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Checks that nothing but whole files is in the cache.
    fn is_clean(&self) {
        assert!(self.blobs().iter().all(|b| !b.contains("incomplete")), "{:?}", self.blobs());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.cache);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

fn fails<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, words: &[&str]) -> Error {
    let e = result.unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    for word in words {
        assert!(e.message().contains(word), "{word:?} in {e}");
    }
    assert!(!e.message().contains("hf_secret"));
    e
}

/// Counts what it is asked for.
fn counter() -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    (count.clone(), count)
}

#[test]
fn a_repository_comes_as_far_as_rlx_reads_it_and_only_once() {
    let world = World::plain(bert());
    let told = std::cell::RefCell::new(Vec::new());
    let hub = Hub::new(world.options());
    let id = HubId::parse(REPO).unwrap();
    let pulled = hub.pull(&id, &|done, total| told.borrow_mut().push((done, total))).unwrap();
    assert_eq!((pulled.path, pulled.commit.as_str()), (world.snapshot("").join(""), COMMIT));
    let got: Vec<&str> = pulled.files.iter().map(|f| f.name.as_str()).collect();
    let wanted =
        ["config.json", "tokenizer.json", "modules.json", "model.safetensors", "1_Pooling/config.json"];
    assert_eq!(got, wanted);
    for file in &pulled.files {
        let original = bert().into_iter().find(|f| f.name == file.name).unwrap();
        assert!(file.is_new && file.bytes == original.bytes.len() as u64);
        assert_eq!(std::fs::read(&file.path).unwrap(), original.bytes, "{}", file.name);
    }
    let all: u64 = pulled.files.iter().map(|f| f.bytes).sum();
    let told = told.into_inner();
    assert!(told.windows(2).all(|w| w[0].0 <= w[1].0) && told.iter().all(|t| t.0 <= t.1));
    assert_eq!(told.last(), Some(&(all, all)));

    // The layout of the Python client.
    assert_eq!(std::fs::read_to_string(world.repo("refs/main")).unwrap(), COMMIT);
    #[cfg(unix)]
    {
        let target = std::fs::read_link(world.snapshot("1_Pooling/config.json")).unwrap();
        assert!(target.starts_with("../../../blobs"), "{target:?}");
    }
    assert!(world.blobs().contains(&large("", 700_000).sha256.unwrap()));
    assert_eq!(world.blobs().len(), 5);
    world.is_clean();
    // What the commit lacks is known, so that nobody asks for it again.
    assert!(world.repo(".no_exist").join(COMMIT).join("2_WeightedLayer/config.json").is_file());
    assert!(hub.cache().find(&id, VECTORS).unwrap().lacking.is_empty());

    // The token goes to the hub, not to the server of the large files.
    assert!(world.hub.log().iter().all(|r| r.header("authorization") == Some("Bearer hf_secret")));
    assert!(!world.cdn.log().is_empty());
    assert!(world.cdn.log().iter().all(|r| r.header("authorization").is_none()));

    world.hub.forget();
    world.cdn.forget();
    let again = hub.pull(&id, &|_, _| panic!("no bytes come")).unwrap();
    assert!(again.files.len() == 5 && again.files.iter().all(|f| !f.is_new));
    assert_eq!(world.hub.lines(), ["GET /api/models/org/name/revision/main"]);
    assert!(world.cdn.log().is_empty());
    // What is in the cache is not asked for at all.
    world.hub.forget();
    assert_eq!(hub.resolve(&id, VECTORS, &|_, _| {}).unwrap(), again.path);
    assert!(world.hub.log().is_empty());
}

#[test]
fn redirects_within_the_hub_keep_the_token() {
    let world = World::with_hub(bert(), |r| match r.path.strip_prefix("/moved") {
        Some(_) => None,
        None if r.path.ends_with("/tokenizer.json") => {
            Some(Reply::new(307, "").with("location", "/moved/tokenizer"))
        }
        None if r.path.starts_with("/api/models/org/name/") => {
            Some(Reply::new(307, "").with("location", format!("/moved{}", r.path)))
        }
        None => None,
    });
    // The place that it moved to.
    let files = bert();
    let moved = World::with_hub(bert(), move |r| match r.path.strip_prefix("/moved") {
        Some("/tokenizer") => Some(Reply::part(r, &files[2].bytes).with("etag", "\"tok\"")),
        Some(path) => {
            let r = Request { path: path.to_owned(), ..r.clone() };
            Some(hub_reply(&r, REPO, &files, "http://nowhere"))
        }
        None if r.path.ends_with("/tokenizer.json") => {
            Some(Reply::new(307, "").with("location", "/moved/tokenizer"))
        }
        None if r.path.starts_with("/api/") => {
            Some(Reply::new(307, "").with("location", format!("/moved{}", r.path)))
        }
        None => None,
    });
    moved.pull("org/name:tokenizer.json").unwrap();
    assert!(moved.blobs().contains(&"tok".to_owned()));
    assert!(moved.hub.log().iter().all(|r| r.header("authorization").is_some()));
    assert!(moved.hub.lines().contains(&"HEAD /moved/tokenizer".to_owned()));
    // A redirect that leads to nothing.
    fails(world.pull("org/name:README.md"), ErrorKind::NotFound, &["org/name", "404"]);
}

#[test]
fn redirects_in_a_circle_end() {
    let world = World::with_hub(bert(), |r| Some(Reply::new(302, "").with("location", r.path.clone())));
    fails(world.pull(REPO), ErrorKind::Io, &["redirects more than 10 times"]);
    let world = World::with_hub(bert(), |_| Some(Reply::new(302, "").with("location", "ftp://a/b")));
    fails(world.pull(REPO), ErrorKind::Io, &["redirects to no address"]);
}

#[test]
fn a_download_that_breaks_off_goes_on_where_it_was() {
    let (count, seen) = counter();
    let file = large("model.safetensors", 700_000);
    let bytes = file.bytes.clone();
    let world = World::with_cdn(bert(), move |r| {
        let reply = Reply::part(r, &bytes);
        Some(if count.fetch_add(1, Ordering::SeqCst) < 3 { reply.sent(Send::Cut(100_000)) } else { reply })
    });
    world.pull(REPO).unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 4);
    let starts: Vec<usize> = world.cdn.log().iter().map(|r| r.range_start().unwrap_or(0)).collect();
    assert_eq!(starts, [0, 100_000, 200_000, 300_000]);
    assert_eq!(std::fs::read(world.snapshot("model.safetensors")).unwrap(), file.bytes);
    world.is_clean();
}

#[test]
fn a_download_that_always_breaks_off_fails_and_a_later_one_goes_on() {
    let (count, seen) = counter();
    let file = large("model.safetensors", 700_000);
    let bytes = file.bytes.clone();
    let world = World::with_cdn(bert(), move |r| {
        let reply = Reply::part(r, &bytes);
        Some(if count.fetch_add(1, Ordering::SeqCst) < 5 { reply.sent(Send::Cut(1000)) } else { reply })
    });
    fails(world.pull(REPO), ErrorKind::Io, &["org/name:model.safetensors", "broke", "5 attempts"]);
    assert_eq!(seen.load(Ordering::SeqCst), 5);
    assert!(!world.snapshot("model.safetensors").exists() && !world.repo("refs/main").exists());
    let incomplete = world.repo("blobs").join(format!("{}.incomplete", file.sha256.unwrap()));
    assert_eq!(incomplete.metadata().unwrap().len(), 5000);
    world.cdn.forget();
    world.pull(REPO).unwrap();
    assert_eq!(world.cdn.log()[0].range_start(), Some(5000));
    assert_eq!(std::fs::read(world.snapshot("model.safetensors")).unwrap(), file.bytes);
    world.is_clean();
}

#[test]
fn a_server_that_sends_all_again_is_understood() {
    let (count, _seen) = counter();
    let file = large("model.safetensors", 700_000);
    let bytes = file.bytes.clone();
    let world = World::with_cdn(bert(), move |_| {
        let reply = Reply::new(200, &bytes);
        Some(if count.fetch_add(1, Ordering::SeqCst) < 2 { reply.sent(Send::Cut(300_000)) } else { reply })
    });
    world.pull(REPO).unwrap();
    assert_eq!(world.cdn.log()[1].range_start(), Some(300_000));
    assert_eq!(std::fs::read(world.snapshot("model.safetensors")).unwrap(), file.bytes);
}

#[test]
fn a_server_that_sends_another_part_is_not_believed() {
    let (count, _seen) = counter();
    let file = large("model.safetensors", 700_000);
    let bytes = file.bytes.clone();
    let world = World::with_cdn(bert(), move |r| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Some(Reply::new(200, &bytes).sent(Send::Cut(1000))),
        1 => Some(Reply::new(206, &bytes[2000..]).with("content-range", "bytes 2000-699999/700000")),
        _ => Some(Reply::part(r, &bytes)),
    });
    world.pull(REPO).unwrap();
    assert_eq!(std::fs::read(world.snapshot("model.safetensors")).unwrap(), file.bytes);
}

#[test]
fn what_another_process_left_is_used_if_it_is_sound() {
    let file = large("model.safetensors", 700_000);
    let name = format!("blobs/{}.incomplete", file.sha256.as_ref().unwrap());
    let sound = World::plain(bert());
    sound.write(&name, &file.bytes[..400_000]);
    sound.pull(REPO).unwrap();
    let starts =
        |world: &World| -> Vec<Option<usize>> { world.cdn.log().iter().map(Request::range_start).collect() };
    assert_eq!(starts(&sound), [Some(400_000)]);
    let whole = World::plain(bert());
    whole.write(&name, &file.bytes);
    whole.pull(REPO).unwrap();
    assert!(whole.cdn.log().is_empty());
    let longer = World::plain(bert());
    longer.write(&name, &[1; 800_000]);
    longer.pull(REPO).unwrap();
    assert_eq!(starts(&longer), [None]);
    let damaged = World::plain(bert());
    damaged.write(&name, &[0; 400_000]);
    damaged.pull(REPO).unwrap();
    assert_eq!(starts(&damaged), [Some(400_000), None]);
    for world in [sound, whole, longer, damaged] {
        assert_eq!(std::fs::read(world.snapshot("model.safetensors")).unwrap(), file.bytes);
        world.is_clean();
    }
}

#[test]
fn wrong_bytes_are_refused_and_nothing_is_left_of_them() {
    let file = large("model.safetensors", 700_000);
    let mut wrong = file.bytes.clone();
    wrong[12345] ^= 1;
    let world = World::with_cdn(bert(), move |_| Some(Reply::new(200, &wrong)));
    fails(world.pull(REPO), ErrorKind::InvalidFile, &["org/name:model.safetensors", "SHA-256"]);
    assert!(!world.snapshot("model.safetensors").exists() && !world.repo("refs/main").exists());
    assert_eq!(world.blobs().len(), 3);
    world.is_clean();
}

#[test]
fn a_wrong_length_is_refused() {
    let file = large("model.safetensors", 700_000);
    let bytes = file.bytes.clone();
    let world = World::with_cdn(bert(), move |_| Some(Reply::new(200, &bytes[..600_000])));
    fails(world.pull(REPO), ErrorKind::InvalidFile, &["model.safetensors", "700000", "600000"]);
    assert!(!world.snapshot("model.safetensors").exists());
    // Without a length that tells it before.
    let bytes = [&file.bytes[..], &[1; 300_000]].concat();
    let world = World::with_cdn(bert(), move |_| Some(Reply::new(200, &bytes).sent(Send::Chunked)));
    fails(world.pull(REPO), ErrorKind::InvalidFile, &["model.safetensors", "more than the 700000 bytes"]);
    assert!(!world.snapshot("model.safetensors").exists());
    world.is_clean();
    let bytes = file.bytes[..600_000].to_vec();
    let world = World::with_cdn(bert(), move |_| Some(Reply::new(200, &bytes).sent(Send::Chunked)));
    fails(world.pull(REPO), ErrorKind::Io, &["600000 bytes of 700000", "5 attempts"]);
    assert!(!world.snapshot("model.safetensors").exists());
}

#[test]
fn a_body_in_chunks_needs_no_length() {
    let world = World::with_hub(bert(), |r| {
        let bytes = "x".repeat(10_000);
        let reply = Reply::new(200, bytes).with("etag", "\"abc\"").sent(Send::Chunked);
        r.path.ends_with("/config.json").then_some(reply)
    });
    let pulled = world.pull("org/name:config.json").unwrap();
    assert_eq!((pulled.files[0].bytes, pulled.files[0].is_new), (10_000, true));
    // One that ends before its last chunk is not whole.
    let world = World::with_hub(bert(), |r| {
        let reply = Reply::new(200, "x".repeat(10_000)).with("etag", "\"abc\"").sent(Send::ChunkedCut);
        r.path.ends_with("/config.json").then_some(reply)
    });
    fails(world.pull("org/name:config.json"), ErrorKind::Io, &["config.json", "5 attempts"]);
    assert!(!world.snapshot("config.json").exists() && world.blobs().is_empty());
}

#[test]
fn a_refusal_says_what_to_do() {
    let refuse = |status: u16, code: &'static str| {
        World::with_hub(bert(), move |_| Some(Reply::new(status, "").with("x-error-code", code)))
    };
    let without_token = |world: &World| {
        let options = HubOptions { token: None, ..world.options() };
        Hub::new(options).pull(&HubId::parse(REPO).unwrap(), &|_, _| {})
    };
    let world = refuse(401, "RepoNotFound");
    fails(world.pull(REPO), ErrorKind::NotFound, &["org/name", "401", "token that was sent"]);
    fails(without_token(&world), ErrorKind::NotFound, &["org/name", "401", "set HF_TOKEN"]);
    assert_eq!(world.hub.log().len(), 2);
    assert!(world.hub.log()[1].header("authorization").is_none());
    fails(refuse(403, "GatedRepo").pull(REPO), ErrorKind::NotFound, &["gated", "ask for access"]);
    fails(refuse(404, "RepoNotFound").pull(REPO), ErrorKind::NotFound, &["no such model", "127.0.0.1"]);
    let e = fails(refuse(404, "RevisionNotFound").pull("org/name@v9"), ErrorKind::NotFound, &["revision"]);
    assert!(e.message().starts_with("org/name@v9: "), "{e}");
    fails(refuse(418, "").pull(REPO), ErrorKind::Io, &["418"]);
    // Refused at the file: the list is free, the files are gated.
    let world = World::with_hub(bert(), |r| {
        r.path.contains("/resolve/").then(|| Reply::new(403, "").with("x-error-code", "GatedRepo"))
    });
    fails(world.pull(REPO), ErrorKind::NotFound, &["org/name:config.json", "gated"]);
}

#[test]
fn a_busy_server_is_asked_again() {
    let (count, seen) = counter();
    let world = World::with_hub(bert(), move |_| {
        let first = count.fetch_add(1, Ordering::SeqCst) < 2;
        first.then(|| Reply::new(429, "").with("retry-after", "0"))
    });
    world.pull("org/name:config.json").unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 5);
    let world = World::with_hub(bert(), |_| Some(Reply::new(503, r#"{"error":"on holiday"}"#)));
    fails(world.pull(REPO), ErrorKind::Io, &["503", "on holiday", "5 attempts"]);
    let world = World::with_hub(bert(), |_| Some(Reply::new(429, "").with("retry-after", "3600")));
    fails(world.pull(REPO), ErrorKind::Io, &["429", "come back later"]);
    assert_eq!(world.hub.log().len(), 1);
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let world = World::with_hub(bert(), |_| Some(Reply::new(200, "").sent(Send::Never)));
    let options = HubOptions { answer_timeout: Duration::from_millis(300), ..world.options() };
    let pulled = Hub::new(options).pull(&HubId::parse(REPO).unwrap(), &|_, _| {});
    fails(pulled, ErrorKind::Io, &["org/name", "took too long"]);
}

#[test]
fn a_file_that_is_not_there_has_near_names() {
    let world = World::plain(vec![small("m-Q4_K_M.gguf", "a"), small("m-Q8_0.gguf", "b")]);
    fails(
        world.pull("org/name:m-Q4_K_L.gguf"),
        ErrorKind::NotFound,
        &["m-Q4_K_L.gguf", "near to it are m-Q4_K_M.gguf"],
    );
    fails(world.pull(REPO), ErrorKind::NotFound, &["2 GGUF models", "m-Q4_K_M.gguf, m-Q8_0.gguf"]);
    assert_eq!(world.hub.lines().len(), 2);
    assert_eq!(world.pull("org/name:q8_0").unwrap().path, world.snapshot("m-Q8_0.gguf"));
    let other = World::plain(vec![small("config.json", "{}"), small("pytorch_model.bin", "x")]);
    fails(other.pull(REPO), ErrorKind::UnsupportedModel, &["pytorch_model.bin"]);
    fails(World::plain(Vec::new()).pull(REPO), ErrorKind::NotFound, &["no model"]);
}

#[test]
fn a_split_file_comes_with_all_its_shards() {
    let world = World::plain(vec![
        small("d/m-00001-of-00002.gguf", "a"),
        small("d/m-00002-of-00002.gguf", "b"),
        small("d/n.gguf", "c"),
    ]);
    let pulled = world.pull("org/name:d/m-00002-of-00002.gguf").unwrap();
    assert_eq!(pulled.path, world.snapshot("d/m-00001-of-00002.gguf"));
    assert_eq!(pulled.files.len(), 2);
    assert!(!world.snapshot("d/n.gguf").exists());
    let missing = World::plain(vec![small("m-00001-of-00002.gguf", "a")]);
    fails(missing.pull(REPO), ErrorKind::NotFound, &["m-00002-of-00002.gguf"]);
}

#[test]
fn the_index_says_which_shards_come() {
    let index = r#"{"weight_map":{"a":"x-1.safetensors","b":"x-2.safetensors"}}"#;
    let mut files = vec![
        small("config.json", "{}"),
        small("model.safetensors.index.json", index),
        small("x-1.safetensors", "1"),
        small("x-2.safetensors", "22"),
        small("consolidated.safetensors", "333"),
    ];
    let world = World::plain(files.clone());
    let pulled = world.pull(REPO).unwrap();
    let got: Vec<&str> = pulled.files.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(got, ["config.json", "model.safetensors.index.json", "x-1.safetensors", "x-2.safetensors"]);
    files.remove(3);
    fails(World::plain(files).pull(REPO), ErrorKind::NotFound, &["x-2.safetensors"]);
}

#[test]
fn names_that_lead_out_of_the_folder_are_refused() {
    for name in ["../config.json", "/etc/passwd", "a/../../b", "a\\..\\b", ""] {
        let world = World::plain(vec![small("config.json", "{}"), small(name, "x")]);
        fails(world.pull(REPO), ErrorKind::InvalidFile, &["org/name", "outside"]);
    }
    let world = World::with_hub(bert(), |r| {
        r.path.ends_with("/config.json").then(|| Reply::new(200, "{}").with("etag", "\"../../../x\""))
    });
    fails(world.pull(REPO), ErrorKind::Io, &["../../../x"]);
    let world = World::with_hub(bert(), |r| {
        let json = r#"{"sha":"../..","siblings":[{"rfilename":"a.gguf"}]}"#;
        r.path.starts_with("/api/").then(|| Reply::new(200, json))
    });
    fails(world.pull(REPO), ErrorKind::Io, &["commit", "../.."]);
    let world = World::with_hub(bert(), |_| Some(Reply::new(200, "<html>")));
    fails(world.pull(REPO), ErrorKind::Io, &["no list of files"]);
    let world = World::with_hub(bert(), |r| r.path.ends_with("/config.json").then(|| Reply::new(200, "{}")));
    fails(world.pull(REPO), ErrorKind::Io, &["no ETag"]);
    let world = World::with_hub(bert(), |r| {
        let reply = Reply::new(200, "{}").with("etag", "\"a\"").with("x-repo-commit", "fedcba");
        r.path.ends_with("/config.json").then_some(reply)
    });
    fails(world.pull(REPO), ErrorKind::Io, &["fedcba"]);
}

#[test]
fn offline_nothing_is_asked() {
    let world = World::plain(bert());
    let hub = Hub::new(HubOptions { offline: true, ..world.options() });
    let id = HubId::parse(REPO).unwrap();
    let place = world.cache.display().to_string();
    fails(hub.pull(&id, &|_, _| {}), ErrorKind::NotFound, &["org/name", &place, "HF_HUB_OFFLINE"]);
    fails(hub.resolve(&id, TEXT, &|_, _| {}), ErrorKind::NotFound, &["org/name", &place, "HF_HUB_OFFLINE"]);
    assert!(world.hub.log().is_empty());
    world.write(&format!("snapshots/{COMMIT}/config.json"), b"{}");
    fails(hub.pull(&id, &|_, _| {}), ErrorKind::NotFound, &["lacks model.safetensors"]);
    world.pull(REPO).unwrap();
    world.hub.forget();
    let pulled = hub.pull(&id, &|_, _| {}).unwrap();
    assert_eq!((pulled.files.len(), pulled.commit.as_str()), (5, COMMIT));
    assert_eq!(hub.resolve(&id, VECTORS, &|_, _| {}).unwrap(), pulled.path);
    let one = hub.pull(&HubId::parse("org/name:config.json").unwrap(), &|_, _| {}).unwrap();
    assert_eq!((one.files.len(), one.path), (1, world.snapshot("config.json")));
    assert!(world.hub.log().is_empty());
}

#[test]
fn what_the_cache_lacks_comes_from_the_hub() {
    let world = World::plain(bert());
    let hub = Hub::new(world.options());
    let id = HubId::parse(REPO).unwrap();
    // As a tool that needs no more leaves it.
    world.write(&format!("snapshots/{COMMIT}/config.json"), b"{}");
    world.write(&format!("snapshots/{COMMIT}/model.safetensors"), b"weights");
    assert_eq!(hub.resolve(&id, NETWORK, &|_, _| {}).unwrap(), world.snapshot(""));
    assert!(world.hub.log().is_empty());
    hub.resolve(&id, VECTORS, &|_, _| {}).unwrap();
    assert!(world.snapshot("1_Pooling/config.json").is_file());
    // What was there was not fetched again.
    assert!(world.cdn.log().is_empty());
}

#[test]
fn where_nobody_answers_the_cache_is_used() {
    let world = World::plain(bert());
    let hub = Hub::new(HubOptions { endpoint: "http://127.0.0.1:1".into(), ..world.options() });
    let id = HubId::parse(REPO).unwrap();
    fails(hub.pull(&id, &|_, _| {}), ErrorKind::Io, &["org/name", "127.0.0.1", "cannot be reached"]);
    let place = world.cache.display().to_string();
    fails(hub.resolve(&id, TEXT, &|_, _| {}), ErrorKind::NotFound, &[&place, "cannot be reached"]);
    world.write(&format!("snapshots/{COMMIT}/config.json"), b"{}");
    world.write(&format!("snapshots/{COMMIT}/model.safetensors"), b"weights");
    assert_eq!(hub.resolve(&id, VECTORS, &|_, _| {}).unwrap(), world.snapshot(""));
}

#[test]
fn two_downloads_at_once_do_no_harm() {
    let world = World::plain(bert());
    std::thread::scope(|scope| {
        let pulls: Vec<_> = (0..4).map(|_| scope.spawn(|| world.pull(REPO))).collect();
        for pull in pulls {
            assert_eq!(pull.join().unwrap().unwrap().files.len(), 5);
        }
    });
    assert_eq!(std::fs::read(world.snapshot("model.safetensors")).unwrap(), large("", 700_000).bytes);
    // One has brought it, the others have waited.
    assert_eq!(world.cdn.log().len(), 1);
    world.is_clean();
    assert!(names(&world.snapshot("")).iter().all(|n| !n.contains("incomplete")));
}

#[test]
fn the_token_comes_from_its_file_too() {
    let world = World::plain(bert());
    let file = world.cache.join("token");
    std::fs::create_dir_all(&world.cache).unwrap();
    std::fs::write(&file, "hf_from_file\n").unwrap();
    let pull = |file: &Path| {
        let options = HubOptions { token: None, token_file: Some(file.to_owned()), ..world.options() };
        Hub::new(options).pull(&HubId::parse("org/name:config.json").unwrap(), &|_, _| {})
    };
    pull(&file).unwrap();
    assert_eq!(world.hub.log()[0].header("authorization"), Some("Bearer hf_from_file"));
    world.hub.forget();
    pull(&world.cache.join("none")).unwrap();
    assert_eq!(world.hub.log()[0].header("authorization"), None);
    std::fs::write(&file, "hf\u{e9} x").unwrap();
    let e = fails(pull(&file), ErrorKind::InvalidArgument, &["HF_TOKEN"]);
    assert!(!e.message().contains("hf\u{e9}"));
}

#[test]
fn what_cannot_be_used_is_said_before_anything_is_asked() {
    let world = World::plain(bert());
    let pull = |options: HubOptions| Hub::new(options).pull(&HubId::parse(REPO).unwrap(), &|_, _| {});
    let endpoint = HubOptions { endpoint: "hub.example".into(), ..world.options() };
    fails(pull(endpoint), ErrorKind::InvalidArgument, &["HF_ENDPOINT", "hub.example"]);
    fails(pull(HubOptions { cache: None, ..world.options() }), ErrorKind::NotFound, &["HF_HOME"]);
    let pem = world.cache.join("ca.pem");
    let certificates = HubOptions { certificates: Some(pem.clone()), ..world.options() };
    fails(pull(certificates.clone()), ErrorKind::Io, &["SSL_CERT_FILE", "ca.pem"]);
    std::fs::create_dir_all(&world.cache).unwrap();
    std::fs::write(&pem, "no certificate").unwrap();
    fails(pull(certificates), ErrorKind::InvalidFile, &["SSL_CERT_FILE", "ca.pem"]);
    assert!(world.hub.log().is_empty());
    // A cache that cannot be written.
    let file = HubOptions { cache: Some(pem), ..world.options() };
    fails(pull(file), ErrorKind::Io, &["ca.pem"]);
}

#[test]
fn models_are_loaded_from_the_cache_by_their_id() {
    let world = World::plain(Vec::new());
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/all-MiniLM-L6-v2-q8_0.gguf");
    world.write(&format!("snapshots/{COMMIT}/README.md"), b"");
    std::fs::copy(shipped, world.snapshot("m-Q8_0.gguf")).unwrap();
    // The variables belong to a process, so another one loads.
    let run = |test: &str| {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--ignored", "--exact", test]).env("HF_HUB_CACHE", &world.cache);
        child.output().unwrap()
    };
    let output = run("child_loads_a_model");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "needs the variables that models_are_loaded_from_the_cache_by_their_id sets"]
fn child_loads_a_model() {
    let settings = rlx_ir::env::Settings::defaults();
    let cpu: Arc<dyn rlx_runtime::Backend> = Arc::new(rlx_cpu::CpuBackend::new(None).unwrap());
    let runtime = rlx_runtime::Runtime::new(vec![cpu], settings);
    for id in ["org/name", "org/name:m-Q8_0.gguf", "org/name:Q8_0"] {
        let model = rlx_models::EmbeddingModel::load(&runtime, id).unwrap();
        assert_eq!(model.embed(["a cat"]).unwrap().len(), 1);
        let options = rlx_models::LanguageOptions::default();
        let e = rlx_models::LanguageModel::load(&runtime, id, &options).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedModel, "{e}");
    }
    fails(
        rlx_models::EmbeddingModel::load(&runtime, "org/other"),
        ErrorKind::NotFound,
        &["rlx pull org/other"],
    );
}
