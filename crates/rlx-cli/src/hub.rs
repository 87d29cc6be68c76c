//! Models by hub id, as they lie in the Hugging Face cache: `models--ORG--NAME/snapshots/REVISION/...`.

use std::path::{Path, PathBuf};

use rlx::ir::bail;

use crate::error::{Error, Result};

/// `org/name`, or one file of it: `org/name:file.gguf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    org: String,
    name: String,
    file: Option<String>,
}

impl Id {
    /// The id in `text`, if it has the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        let (repo, file) = match text.split_once(':') {
            Some((repo, file)) => (repo, Some(file)),
            None => (text, None),
        };
        let (org, name) = repo.split_once('/')?;
        let word = |w: &str| {
            !w.is_empty()
                && !w.starts_with('.')
                && w.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        let file_parts = |f: &str| f.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        let is_file = |w: &str| w.ends_with(".gguf") || w.ends_with(".safetensors");
        (word(org) && word(name) && file.map_or(!is_file(name), file_parts)).then(|| Self {
            org: org.to_owned(),
            name: name.to_owned(),
            file: file.map(str::to_owned),
        })
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.org, self.name)?;
        self.file.as_ref().map_or(Ok(()), |file| write!(f, ":{file}"))
    }
}

/// The Hugging Face cache.
#[derive(Clone, Debug)]
pub struct Cache {
    /// `None` where neither the variables nor the home folder say where it is.
    folder: Option<PathBuf>,
}

impl Cache {
    /// The cache that `HF_HUB_CACHE`, `HF_HOME`, `XDG_CACHE_HOME` and `HOME` name, in this order.
    pub fn from_env() -> Self {
        Self::from_lookup(|name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let home = || lookup("HOME").or_else(|| lookup("USERPROFILE")).map(|h| h.join(".cache"));
        let caches = || lookup("XDG_CACHE_HOME").or_else(home).map(|c| c.join("huggingface"));
        let hub = || lookup("HF_HOME").or_else(caches).map(|h| h.join("hub"));
        Self { folder: lookup("HF_HUB_CACHE").or_else(hub) }
    }

    /// The folder or file of a model: of the revision `main`, else of the only one that is there.
    pub fn find(&self, id: &Id) -> Result<PathBuf> {
        let Some(cache) = &self.folder else {
            bail!(
                NotFound,
                "{id}: no such file, and no Hugging Face cache to look in: set HF_HOME to the folder that holds it"
            );
        };
        let repo = cache.join(format!("models--{}--{}", id.org, id.name));
        if !repo.is_dir() {
            bail!(
                NotFound,
                "{id}: no such file, and no such model in the Hugging Face cache {}\n\
                 download it there first (`hf download {}/{}`), or name a path",
                cache.display(),
                id.org,
                id.name
            );
        }
        let Some(snapshot) = snapshot(&repo) else {
            bail!(NotFound, "{id}: {} holds no whole snapshot: download the model again", repo.display());
        };
        match &id.file {
            None => Ok(snapshot),
            Some(file) if snapshot.join(file).exists() => Ok(snapshot.join(file)),
            Some(file) => bail!(NotFound, "{id}: {} holds no file {file}", snapshot.display()),
        }
    }
}

fn snapshot(repo: &Path) -> Option<PathBuf> {
    let snapshots = repo.join("snapshots");
    if let Ok(revision) = std::fs::read_to_string(repo.join("refs").join("main")) {
        let revision = revision.trim();
        let main = snapshots.join(revision);
        if revision.chars().all(|c| c.is_ascii_alphanumeric()) && !revision.is_empty() && main.is_dir() {
            return Some(main);
        }
    }
    let mut found = std::fs::read_dir(&snapshots).ok()?.flatten().map(|e| e.path()).filter(|p| p.is_dir());
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_paths() {
        assert_eq!(Id::parse("a-b/c.d_1").unwrap().to_string(), "a-b/c.d_1");
        assert_eq!(Id::parse("a/b:sub/c.gguf").unwrap().file.as_deref(), Some("sub/c.gguf"));
        for path in ["model", "a/b/c", "./b", "../b", "/a", "a/", "a/b.gguf", "a/b:../c", "a/b:/c", "a b/c"] {
            assert_eq!(Id::parse(path), None, "{path}");
        }
    }

    #[test]
    fn the_cache_is_where_the_variables_say() {
        let with = |set: &'static [(&str, &str)]| {
            Cache::from_lookup(|n| set.iter().find(|s| s.0 == n).map(|s| s.1.into())).folder
        };
        assert_eq!(with(&[("HF_HUB_CACHE", "/c"), ("HF_HOME", "/h")]), Some("/c".into()));
        assert_eq!(with(&[("HF_HOME", "/h"), ("HOME", "/u")]), Some("/h/hub".into()));
        assert_eq!(with(&[("HOME", "/u")]), Some("/u/.cache/huggingface/hub".into()));
        assert_eq!(with(&[]), None);
    }

    #[test]
    fn the_main_revision_is_taken() {
        let root = std::env::temp_dir().join(format!("rlx-hub-{}", std::process::id()));
        let repo = root.join("models--o--n");
        for revision in ["aaa", "bbb"] {
            std::fs::create_dir_all(repo.join("snapshots").join(revision)).unwrap();
        }
        let cache = Cache { folder: Some(root.clone()) };
        let id = Id::parse("o/n").unwrap();
        assert!(cache.find(&id).unwrap_err().message().contains("snapshot"));
        std::fs::create_dir_all(repo.join("refs")).unwrap();
        std::fs::write(repo.join("refs/main"), "bbb\n").unwrap();
        assert_eq!(cache.find(&id).unwrap(), repo.join("snapshots/bbb"));
        let e = cache.find(&Id::parse("o/n:x.gguf").unwrap()).unwrap_err();
        assert!(e.message().contains("x.gguf"), "{e}");
        assert!(cache.find(&Id::parse("o/other").unwrap()).is_err());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
