//! Downloading a model into the cache.

use std::collections::HashSet;
use std::path::PathBuf;

use rlx_ir::{ErrorKind, bail};
use serde::Deserialize;

use super::cache::{Cache, Snapshot};
use super::fetch::{self, Remote};
use super::http::{Asked, Client, Method};
use super::id::{HubId, is_commit};
use super::open::VECTORS;
use super::options::HubOptions;
use super::retry::Attempts;
use super::select::{INDEX, MODULES, Model, module_folders};
use super::store::Store;
use super::url::{encode_part, encode_path};
use crate::files::{is_inside, shard_names, small};
use crate::{Error, Result};

/// Longer lists of files are refused, in bytes.
const MAX_LIST_BYTES: u64 = 64 << 20;

/// Hears, while bytes come, how many are there of how many, over all files of a download.
pub type PullProgress<'a> = dyn Fn(u64, u64) + 'a;

/// The hub and the cache.
#[derive(Debug)]
pub struct Hub {
    options: HubOptions,
    cache: Cache,
}

/// A model that is in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// The folder of the model, or its file.
    pub path: PathBuf,
    /// The commit.
    pub commit: String,
    /// Its files, in the order in which they were asked for.
    pub files: Vec<PulledFile>,
}

/// A file of a model that is in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PulledFile {
    /// Its name in the repository.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Whether it was downloaded now, and not there before.
    pub is_new: bool,
}

/// What the hub says of a revision.
#[derive(Deserialize)]
struct Revision {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Hub {
    /// The hub and the cache that `options` name. Nothing is asked yet.
    pub fn new(options: HubOptions) -> Self {
        Self { cache: Cache::new(&options), options }
    }

    /// Those that the environment names.
    pub fn from_env() -> Self {
        Self::new(HubOptions::from_env())
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Where they are and how the hub is asked.
    pub fn options(&self) -> &HubOptions {
        &self.options
    }

    /// The path of a model: from the cache if it holds all that is `wanted` (see [`Cache::find`]), else from the hub.
    ///
    /// Where the hub cannot be asked, what the cache holds is taken, with a warning that names what may be missing.
    ///
    /// # Errors
    /// As [`pull`](Self::pull); `NotFound` where neither has the model.
    pub fn resolve(&self, id: &HubId, wanted: &[&str], progress: &PullProgress<'_>) -> Result<PathBuf> {
        let cached = match self.cache.find(id, wanted) {
            Ok(cached) if cached.lacking.is_empty() => return Ok(cached.path),
            cached => cached,
        };
        if self.options.offline {
            let cached = cached.map_err(|e| offline(&e))?;
            warn_of(id, &cached.lacking, "HF_HUB_OFFLINE is set");
            return Ok(cached.path);
        }
        let is_known = self.cache.repo_folder(id)?.is_dir();
        match (self.pull(id, progress), cached) {
            (Ok(pulled), _) => Ok(pulled.path),
            (Err(e), Ok(cached)) if e.kind() == ErrorKind::Io => {
                warn_of(id, &cached.lacking, e.message().lines().next().unwrap_or_default());
                Ok(cached.path)
            }
            // The model is missing, whatever has kept it from coming; perhaps a path was meant.
            (Err(e), Err(missing))
                if e.kind() == ErrorKind::Io || e.kind() == ErrorKind::NotFound && !is_known =>
            {
                let first = missing.message().lines().next().unwrap_or_default();
                bail!(NotFound, "{first}\nit cannot be downloaded: {}", e.message())
            }
            (Err(e), _) => Err(e),
        }
    }

    /// Downloads a model into the cache: for a whole repository what RLX reads of it, for a file the file and its other
    /// shards. What is there already is not downloaded again.
    ///
    /// With [`offline`](HubOptions::offline) nothing is asked, and what the cache holds is returned.
    ///
    /// # Errors
    /// `NotFound` for a model, revision or file that the hub does not have or gives no access to, and for several GGUF files
    /// of which none is named; `UnsupportedModel` for weights in other forms; `InvalidFile` for a wrong length or checksum;
    /// `InvalidArgument` for an endpoint or a token that cannot be used; `Io` for all that fails on the way.
    pub fn pull(&self, id: &HubId, progress: &PullProgress<'_>) -> Result<Pulled> {
        if self.options.offline {
            return self.pull_offline(id);
        }
        let _span = tracing::info_span!("pull", model = %id).entered();
        // A cache that is nowhere is an error before anything is asked.
        self.cache.repo_folder(id)?;
        let client = Client::new(&self.options)?;
        let asked = format!("{}@{}", id.repo(), id.revision());
        let asked = if id.takes_any_revision() { id.repo() } else { &asked };
        let revision = self.revision(&client, id, asked)?;
        let names: Vec<String> = revision.siblings.into_iter().map(|s| s.rfilename).collect();
        let model = Model::choose(id, &names, client.host())?;
        model.require_weights(id, &names, client.host())?;

        let store = self.store(id)?;
        let mut pull = Pull {
            snapshot: store.snapshot(&revision.sha),
            hub: self,
            client: &client,
            id,
            asked,
            commit: &revision.sha,
            store: &store,
            progress,
            files: Vec::new(),
            done: 0,
            total: 0,
        };
        pull.fetch(&model.first_files(&names))?;
        let (modules, shards) = pull.parts(&model)?;
        pull.fetch(&model.other_files(id, &names, &modules, shards.as_deref())?)?;
        pull.mark_absent(&model, &names, &modules)?;
        store.set_ref(id.revision(), &revision.sha)?;
        let (snapshot, files) = (pull.snapshot, pull.files);
        let path = match &model {
            Model::Folder => snapshot.folder(),
            Model::Safetensors(file) | Model::File(file) => snapshot.path(file),
        };
        Ok(Pulled { path, commit: revision.sha, files })
    }

    fn pull_offline(&self, id: &HubId) -> Result<Pulled> {
        let cached = self.cache.find(id, &[]).map_err(|e| offline(&e))?;
        if !cached.lacking.is_empty() {
            bail!(
                NotFound,
                "{id}: {} lacks {}, and HF_HUB_OFFLINE is set",
                cached.path.display(),
                cached.lacking.join(", ")
            );
        }
        let (snapshot, names) = self.cache.files(id, &cached.path)?;
        let file = |name: &String| {
            let path = snapshot.path(name);
            let bytes = path.metadata().map_or(0, |m| m.len());
            PulledFile { name: name.clone(), path, bytes, is_new: false }
        };
        let files = names.iter().map(file).collect();
        Ok(Pulled { path: cached.path, commit: snapshot.commit().to_owned(), files })
    }

    fn store(&self, id: &HubId) -> Result<Store> {
        let repo = self.cache.repo_folder(id)?;
        Store::new(repo.parent().unwrap_or(&repo), id)
    }

    /// The commit and the files of the id's revision.
    fn revision(&self, client: &Client, id: &HubId, asked: &str) -> Result<Revision> {
        let url = client.url(&format!("api/models/{}/revision/{}", id.repo(), encode_part(id.revision())));
        let asked = Asked { id: asked, file: None };
        let mut attempts = Attempts::new(self.options.retry_wait);
        let json = loop {
            let read = client.send(Method::Get(0), &url, &asked).and_then(|mut answer| {
                let body = answer.body_mut().with_config().limit(MAX_LIST_BYTES).read_to_vec();
                body.map_err(|e| client.broken(e, &url, &asked))
            });
            match read {
                Ok(json) => break json,
                Err(failure) => attempts.failed(failure, 0)?,
            }
        };
        let revision: Revision = match serde_json::from_slice(&json) {
            Ok(revision) => revision,
            Err(e) => bail!(Io, "{}: {} gives no list of files ({e})", asked.id, client.host()),
        };
        if !is_commit(&revision.sha) {
            bail!(Io, "{}: {} calls the commit {:?}", asked.id, client.host(), revision.sha);
        }
        if let Some(unsafe_name) = revision.siblings.iter().map(|s| &s.rfilename).find(|n| !is_inside(n)) {
            bail!(
                InvalidFile,
                "{}: {} lists a file {unsafe_name:?}, which would lie outside of the model's folder",
                asked.id,
                client.host()
            );
        }
        Ok(revision)
    }
}

/// One download.
struct Pull<'a> {
    hub: &'a Hub,
    client: &'a Client,
    id: &'a HubId,
    /// The id in messages.
    asked: &'a str,
    commit: &'a str,
    store: &'a Store,
    snapshot: Snapshot,
    progress: &'a PullProgress<'a>,
    files: Vec<PulledFile>,
    /// Bytes that are there, of the files that were not there before.
    done: u64,
    /// Bytes of those files.
    total: u64,
}

impl Pull<'_> {
    /// Gets files that are not there yet.
    fn fetch(&mut self, names: &[String]) -> Result<()> {
        let seen: HashSet<String> = self.files.iter().map(|f| f.name.clone()).collect();
        let names: Vec<&String> = names.iter().filter(|n| !seen.contains(*n)).collect();
        let mut remotes = Vec::with_capacity(names.len());
        for name in &names {
            let remote = if self.snapshot.has(name) { None } else { Some(self.ask(name)?) };
            self.total += remote.as_ref().and_then(|r| r.bytes).unwrap_or(0);
            remotes.push(remote);
        }
        for (name, remote) in names.into_iter().zip(remotes) {
            let is_new = match &remote {
                Some(remote) => self.receive(name, remote)?,
                None => false,
            };
            let path = self.snapshot.path(name);
            let bytes = path.metadata().map_err(|e| super::blob::io_error(&path, &e))?.len();
            self.files.push(PulledFile { name: name.clone(), path, bytes, is_new });
        }
        Ok(())
    }

    fn url(&self, name: &str) -> super::url::Url {
        self.client.url(&format!("{}/resolve/{}/{}", self.id.repo(), self.commit, encode_path(name)))
    }

    fn ask(&self, name: &str) -> Result<Remote> {
        let asked = Asked { id: self.asked, file: Some(name) };
        fetch::ask(self.client, &self.hub.options, &self.url(name), &asked, self.commit)
    }

    /// Whether bytes had to come.
    fn receive(&mut self, name: &str, remote: &Remote) -> Result<bool> {
        let blob = self.store.blob(&remote.etag);
        let mut is_new = false;
        if !blob.is_file() {
            let _lock = self.store.lock(&remote.etag, name)?;
            // The process that was waited for may have brought it.
            if !blob.is_file() {
                let told = |bytes: u64| {
                    let total = self.total + if remote.bytes.is_none() { bytes } else { 0 };
                    (self.progress)(self.done + bytes, total);
                };
                let asked = Asked { id: self.asked, file: Some(name) };
                let options = &self.hub.options;
                fetch::receive(self.client, options, &self.url(name), &asked, remote, &blob, &told)?;
                is_new = true;
            }
        }
        let bytes = blob.metadata().map_or(0, |m| m.len());
        self.done += bytes;
        self.total += if remote.bytes.is_none() { bytes } else { 0 };
        self.store.link(&self.snapshot, name, &remote.etag)?;
        Ok(is_new)
    }

    /// The folders of the modules and the shards of the weights, from files that are there now.
    fn parts(&self, model: &Model) -> Result<(Vec<String>, Option<Vec<String>>)> {
        let fetched = |name: &str| self.files.iter().any(|f| f.name == name);
        let mut modules = Vec::new();
        if fetched(MODULES) {
            modules = module_folders(&small::read(&self.snapshot.path(MODULES))?);
        }
        let index = *model == Model::Folder && fetched(INDEX);
        let shards = if index { Some(shard_names(&self.snapshot.path(INDEX))?) } else { None };
        Ok((modules, shards))
    }

    /// Writes which files the commit does not have, so that later nobody has to ask.
    fn mark_absent(&self, model: &Model, names: &[String], modules: &[String]) -> Result<()> {
        if matches!(model, Model::File(_)) {
            return Ok(());
        }
        let configs = modules.iter().map(|m| format!("{}/config.json", m.trim_end_matches('/')));
        let optional = VECTORS.iter().map(|name| (*name).to_owned());
        for name in optional.chain(configs).filter(|n| is_inside(n) && !names.contains(n)) {
            self.store.set_absent(&self.snapshot, &name)?;
        }
        Ok(())
    }
}

/// What is not there is not asked for.
fn offline(e: &Error) -> Error {
    let first = e.message().lines().next().unwrap_or_default().to_owned();
    Error::new(e.kind(), format!("{first}\nHF_HUB_OFFLINE is set, so the hub is not asked for it"))
}

fn warn_of(id: &HubId, lacking: &[String], why: &str) {
    tracing::warn!("{id}: the cache may lack {}, and the hub was not asked: {why}", lacking.join(", "));
}
