//! A hub with its files, and what tests ask of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rlx_ir::ErrorKind;
use rlx_models::hub::{Hub, HubId, HubOptions, Pulled, Token};
use rlx_models::{Error, Result};
use sha2::{Digest, Sha256};

use crate::http_server::{COMMIT, Reply, RepoFile, Request, Server, cdn_reply, hub_reply};

pub(crate) const REPO: &str = "org/name";

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

pub(crate) fn small(name: &'static str, text: &str) -> RepoFile {
    RepoFile { name, bytes: text.into(), sha256: None }
}

/// So many bytes that are not all alike.
pub(crate) fn large(name: &'static str, bytes: usize) -> RepoFile {
    let bytes: Vec<u8> = (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    RepoFile { name, sha256: Some(sha256(&bytes)), bytes }
}

pub(crate) fn bert() -> Vec<RepoFile> {
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
pub(crate) struct World {
    pub(crate) hub: Server,
    pub(crate) cdn: Server,
    pub(crate) cache: PathBuf,
}

pub(crate) type Hook = Box<dyn Fn(&Request) -> Option<Reply> + Send + Sync>;

impl World {
    /// With these files; `hub` and `cdn` may answer a request in another way.
    pub(crate) fn new(files: Vec<RepoFile>, hub: Hook, cdn: Hook) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("rlx-hub-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let cdn_files = files.clone();
        let cdn = Server::start(move |r| cdn(r).unwrap_or_else(|| cdn_reply(r, &cdn_files)));
        let place = cdn.url.clone();
        let hub = Server::start(move |r| hub(r).unwrap_or_else(|| hub_reply(r, REPO, &files, &place)));
        Self { hub, cdn, cache: std::env::temp_dir().join(name) }
    }

    pub(crate) fn plain(files: Vec<RepoFile>) -> Self {
        Self::new(files, Box::new(|_| None), Box::new(|_| None))
    }

    pub(crate) fn with_hub(
        files: Vec<RepoFile>,
        hub: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::new(files, Box::new(hub), Box::new(|_| None))
    }

    pub(crate) fn with_cdn(
        files: Vec<RepoFile>,
        cdn: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::new(files, Box::new(|_| None), Box::new(cdn))
    }

    pub(crate) fn options(&self) -> HubOptions {
        HubOptions {
            cache: Some(self.cache.clone()),
            endpoint: self.hub.url.clone(),
            token: Token::new("hf_secret"),
            retry_wait: Duration::from_millis(1),
            ..HubOptions::from_lookup(|_| None)
        }
    }

    pub(crate) fn pull(&self, id: &str) -> Result<Pulled> {
        Hub::new(self.options()).pull(&HubId::parse(id).unwrap(), &|_, _| {})
    }

    pub(crate) fn repo(&self, name: &str) -> PathBuf {
        self.cache.join("models--org--name").join(name)
    }

    pub(crate) fn snapshot(&self, name: &str) -> PathBuf {
        self.repo("snapshots").join(COMMIT).join(name)
    }

    /// The names in `blobs`.
    pub(crate) fn blobs(&self) -> Vec<String> {
        names(&self.repo("blobs"))
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.repo(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Checks that nothing but whole files is in the cache.
    pub(crate) fn is_clean(&self) {
        assert!(self.blobs().iter().all(|b| !b.contains("incomplete")), "{:?}", self.blobs());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.cache);
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

pub(crate) fn fails<T: std::fmt::Debug>(result: Result<T>, kind: ErrorKind, words: &[&str]) -> Error {
    let e = result.unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    for word in words {
        assert!(e.message().contains(word), "{word:?} in {e}");
    }
    assert!(!e.message().contains("hf_secret"));
    e
}

/// Counts what it is asked for.
pub(crate) fn counter() -> (Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    (count.clone(), count)
}
