//! Redirects, drops, wrong bytes and refusals.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rlx_ir::ErrorKind;
use rlx_models::hub::{Hub, HubId, HubOptions};

use crate::http_server::{Reply, Request, Send, hub_reply};
use crate::world::{REPO, World, bert, counter, fails, large};

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
