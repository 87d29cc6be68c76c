//! Which files of a repository come.

use rlx_ir::ErrorKind;
use rlx_models::hub::{Hub, HubId, VECTORS};

use crate::http_server::{COMMIT, Reply};
use crate::world::{REPO, World, bert, fails, large, small};

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
