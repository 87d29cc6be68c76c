//! The cache, working offline, settings, and loading by id.

use std::path::Path;
use std::sync::Arc;

use rlx_ir::ErrorKind;
use rlx_models::hub::{Hub, HubId, HubOptions, NETWORK, TEXT, VECTORS};

use crate::http_server::COMMIT;
use crate::world::{REPO, World, bert, fails, large, names};

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
    let output = run("cache::child_loads_a_model");
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
