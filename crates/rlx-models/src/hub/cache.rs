//! The Hugging Face cache, as the Python client lays it out:
//!
//! ```text
//! models--ORG--NAME/refs/main                    the commit of a branch or tag
//! models--ORG--NAME/snapshots/COMMIT/config.json the files of a commit, linked to
//! models--ORG--NAME/blobs/ETAG                   what is in them
//! models--ORG--NAME/.no_exist/COMMIT/FILE        a file that this commit does not have
//! ```

use std::path::{Path, PathBuf};

use rlx_ir::bail;

use super::id::{HubId, is_commit};
use super::options::HubOptions;
use super::select::{INDEX, MODULES, Model, SINGLE, module_folders, with_shards};
use crate::files::{shard_names, small};
use crate::{Error, Result};

/// Folders of a snapshot are read to this depth.
const MAX_DEPTH: usize = 8;

/// The Hugging Face cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: Option<PathBuf>,
}

/// A model in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The folder of the model, or its file.
    pub path: PathBuf,
    /// Files that the model may have and the cache does not hold. Other tools put only what they need into the cache.
    pub lacking: Vec<String>,
}

impl Cache {
    /// The cache that `options` name.
    pub fn new(options: &HubOptions) -> Self {
        Self { folder: options.cache.clone() }
    }

    /// Its folder, whether it exists or not; `None` where nothing says where it is.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The folder of a repository, whether it exists or not.
    pub(super) fn repo_folder(&self, id: &HubId) -> Result<PathBuf> {
        let Some(cache) = &self.folder else {
            bail!(
                NotFound,
                "{id}: no such file, and no Hugging Face cache to look in: set HF_HOME to the folder that holds it"
            );
        };
        Ok(cache.join(folder_name(id)))
    }

    /// Looks for a model. `wanted` names files that its use needs besides config and weights.
    ///
    /// # Errors
    /// `NotFound` saying what was looked for and where; `InvalidFile` for a damaged index of shards.
    pub fn find(&self, id: &HubId, wanted: &[&str]) -> Result<Cached> {
        let repo = self.repo_folder(id)?;
        if !repo.is_dir() {
            let cache = repo.parent().unwrap_or(&repo);
            bail!(
                NotFound,
                "{id}: no such file or folder, and no such model in the Hugging Face cache {}\n\
                 `rlx pull {id}` downloads it there; or name a path",
                cache.display()
            );
        }
        let Some(snapshot) = Snapshot::of(&repo, id) else {
            bail!(
                NotFound,
                "{id}: {} holds no snapshot of the revision {}\n`rlx pull {id}` downloads it",
                repo.display(),
                id.revision()
            );
        };
        snapshot.find(id, wanted)
    }
}

#[cfg(feature = "hub")]
impl Cache {
    /// The snapshot of a model that was found at `path`, and the names of its files.
    pub(super) fn files(&self, id: &HubId, path: &Path) -> Result<(Snapshot, Vec<String>)> {
        let repo = self.repo_folder(id)?;
        let Some(snapshot) = Snapshot::of(&repo, id) else {
            bail!(NotFound, "{id}: {} has gone", path.display())
        };
        let names = snapshot.files();
        let own = names.iter().find(|name| snapshot.path(name) == path);
        let names = own.map(|name| with_shards(name)).unwrap_or(names);
        Ok((snapshot, names))
    }
}

/// `models--ORG--NAME`.
pub(super) fn folder_name(id: &HubId) -> String {
    format!("models--{}", id.repo().replace('/', "--"))
}

/// The files of one commit.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    repo: PathBuf,
    commit: String,
}

impl Snapshot {
    /// That of a commit.
    pub(super) fn new(repo: &Path, commit: &str) -> Self {
        Self { repo: repo.to_owned(), commit: commit.to_owned() }
    }

    /// That of the id's revision; where none is named and no `main` is known, the only one.
    fn of(repo: &Path, id: &HubId) -> Option<Self> {
        let snapshots = repo.join("snapshots");
        let there = |commit: &str| is_commit(commit) && snapshots.join(commit).is_dir();
        if there(id.revision()) {
            return Some(Self::new(repo, id.revision()));
        }
        if let Ok(commit) = small::read_text(&repo.join("refs").join(id.revision()))
            && there(commit.trim())
        {
            return Some(Self::new(repo, commit.trim()));
        }
        if !id.takes_any_revision() {
            return None;
        }
        let names =
            std::fs::read_dir(&snapshots).ok()?.flatten().filter_map(|e| e.file_name().into_string().ok());
        let mut found = names.filter(|name| there(name));
        let first = found.next()?;
        found.next().is_none().then(|| Self::new(repo, &first))
    }

    /// The commit.
    #[cfg(feature = "hub")]
    pub(super) fn commit(&self) -> &str {
        &self.commit
    }

    /// Its folder.
    pub(super) fn folder(&self) -> PathBuf {
        self.repo.join("snapshots").join(&self.commit)
    }

    /// Where the file `name` is, or would be.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Whether it holds the file; a link whose blob is gone does not count.
    pub(super) fn has(&self, name: &str) -> bool {
        self.path(name).is_file()
    }

    /// Where it is written that the commit has no file of this name.
    pub(super) fn absence_path(&self, name: &str) -> PathBuf {
        self.repo.join(".no_exist").join(&self.commit).join(name)
    }

    fn may_have(&self, name: &str) -> bool {
        !self.has(name) && !self.absence_path(name).exists()
    }

    /// Its files, with `/` in their names.
    fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        list(&self.folder(), "", MAX_DEPTH, &mut names);
        names.sort();
        names
    }

    fn find(&self, id: &HubId, wanted: &[&str]) -> Result<Cached> {
        let place = self.folder().display().to_string();
        let hint = |e: Error| Error::new(e.kind(), with_hint(e.message(), id));
        let model = Model::choose(id, &self.files(), &place).map_err(hint)?;
        let (path, lacking) = match &model {
            Model::Folder => (self.folder(), self.lacking(wanted, true)?),
            Model::Safetensors(file) => (self.path(file), self.lacking(wanted, false)?),
            Model::File(file) => {
                let missing = with_shards(file).into_iter().filter(|name| !self.has(name)).collect();
                (self.path(file), missing)
            }
        };
        Ok(Cached { path, lacking })
    }

    fn lacking(&self, wanted: &[&str], with_weights: bool) -> Result<Vec<String>> {
        let mut names: Vec<String> = std::iter::once("config.json")
            .chain(wanted.iter().copied())
            .map(str::to_owned)
            .filter(|name| self.may_have(name))
            .collect();
        if with_weights {
            if self.has(INDEX) {
                names.extend(shard_names(&self.path(INDEX))?.into_iter().filter(|name| !self.has(name)));
            } else if !self.files().iter().any(|n| !n.contains('/') && n.ends_with(".safetensors")) {
                names.push(SINGLE.to_owned());
            }
        }
        if wanted.contains(&MODULES)
            && let Ok(json) = small::read(&self.path(MODULES))
        {
            let configs = module_folders(&json).into_iter().map(|folder| format!("{folder}/config.json"));
            names.extend(configs.filter(|name| self.may_have(name)));
        }
        Ok(names)
    }
}

/// The message with a second line that says what to do, where it has none.
fn with_hint(message: &str, id: &HubId) -> String {
    if message.contains('\n') {
        return message.to_owned();
    }
    format!("{message}\n`rlx pull {id}` downloads what is missing")
}

fn list(folder: &Path, prefix: &str, depth: usize, names: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = entry.path();
        if path.is_file() {
            names.push(format!("{prefix}{name}"));
        } else if path.is_dir() && depth > 0 {
            list(&path, &format!("{prefix}{name}/"), depth - 1, names);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rlx-hub-cache-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn file(&self, name: &str, text: &str) {
            let path = self.0.join("models--o--n").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn find(&self, id: &str, wanted: &[&str]) -> Result<Cached> {
            Cache { folder: Some(self.0.clone()) }.find(&HubId::parse(id).unwrap(), wanted)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.join("models--o--n").join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_revision_that_is_named_is_taken() {
        let folder = Folder::new("revision");
        let e = folder.find("o/n", &[]).unwrap_err();
        assert!(e.message().contains("o/n") && e.message().contains("rlx pull o/n"), "{e}");
        folder.file("snapshots/aaa/config.json", "{}");
        assert_eq!(folder.find("o/n", &[]).unwrap().path, folder.path("snapshots/aaa"));
        folder.file("snapshots/bbb/config.json", "{}");
        assert!(folder.find("o/n", &[]).unwrap_err().message().contains("main"));
        folder.file("refs/main", "bbb\n");
        folder.file("refs/refs/pr/1", "aaa");
        assert_eq!(folder.find("o/n", &[]).unwrap().path, folder.path("snapshots/bbb"));
        for id in ["o/n@aaa", "o/n@refs/pr/1"] {
            assert_eq!(folder.find(id, &[]).unwrap().path, folder.path("snapshots/aaa"));
        }
        assert!(folder.find("o/n@v2", &[]).unwrap_err().message().contains("v2"));
        folder.file("refs/main", "../../..");
        assert!(folder.find("o/n", &[]).is_err());
    }

    #[test]
    fn what_a_folder_lacks_is_told() {
        let folder = Folder::new("lacking");
        folder.file("snapshots/aaa/config.json", "{}");
        let lacking = || folder.find("o/n", &["tokenizer.json", MODULES]).unwrap().lacking;
        assert_eq!(lacking(), ["tokenizer.json", "modules.json", "model.safetensors"]);
        folder.file("snapshots/aaa/model.safetensors.index.json", r#"{"weight_map":{"a":"x.safetensors"}}"#);
        folder.file("snapshots/aaa/tokenizer.json", "{}");
        folder.file("snapshots/aaa/modules.json", r#"[{"path":""},{"path":"1_Pooling"},{"path":"2_Dense"}]"#);
        assert_eq!(lacking(), ["x.safetensors", "1_Pooling/config.json", "2_Dense/config.json"]);
        folder.file("snapshots/aaa/x.safetensors", "");
        folder.file("snapshots/aaa/1_Pooling/config.json", "{}");
        folder.file(".no_exist/aaa/2_Dense/config.json", "");
        assert!(lacking().is_empty());
    }

    #[test]
    fn a_gguf_file_is_found_by_name_type_or_alone() {
        let folder = Folder::new("gguf");
        folder.file("snapshots/aaa/m-Q8_0.gguf", "");
        let first = folder.path("snapshots/aaa/m-Q8_0.gguf");
        for id in ["o/n", "o/n:m-Q8_0.gguf", "o/n:q8_0"] {
            assert_eq!(folder.find(id, &[MODULES]).unwrap(), Cached { path: first.clone(), lacking: vec![] });
        }
        let e = folder.find("o/n:q4_0", &[]).unwrap_err();
        assert!(e.message().contains("q4_0") && e.message().contains("m-Q8_0.gguf"), "{e}");
        folder.file("snapshots/aaa/d/s-00002-of-00002.gguf", "");
        let split = folder.find("o/n:d/s-00002-of-00002.gguf", &[]).unwrap();
        assert_eq!(split.path, folder.path("snapshots/aaa/d/s-00001-of-00002.gguf"));
        assert_eq!(split.lacking, ["d/s-00001-of-00002.gguf"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_whose_blob_is_gone_is_no_file() {
        let folder = Folder::new("link");
        folder.file("snapshots/aaa/config.json", "{}");
        std::os::unix::fs::symlink("../../blobs/b", folder.path("snapshots/aaa/model.safetensors")).unwrap();
        assert_eq!(folder.find("o/n", &[]).unwrap().lacking, ["model.safetensors"]);
        folder.file("blobs/b", "");
        assert!(folder.find("o/n", &[]).unwrap().lacking.is_empty());
    }
}
