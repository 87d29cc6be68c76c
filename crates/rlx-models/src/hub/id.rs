//! The name of a model on the hub.

use std::fmt;

use crate::files::is_inside;

/// The revision that is meant where none is named.
const MAIN: &str = "main";
/// Names of repositories are no longer than this, in bytes.
const MAX_REPO: usize = 96;

/// `org/name`, one file of it as `org/name:file.gguf`, another revision as `org/name@revision` or
/// `org/name@revision:file.gguf`.
///
/// ```
/// use rlx_models::hub::HubId;
///
/// let id = HubId::parse("org/name@v2:model-Q4_K_M.gguf").unwrap();
/// assert_eq!((id.repo(), id.revision(), id.file()), ("org/name", "v2", Some("model-Q4_K_M.gguf")));
/// assert_eq!(HubId::parse("folder/model.gguf"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubId {
    repo: String,
    revision: Option<String>,
    file: Option<String>,
}

impl HubId {
    /// The id in `text`; `None` for what has not the form of one. `folder/model.gguf` and `folder/model.safetensors` are
    /// paths.
    pub fn parse(text: &str) -> Option<Self> {
        let (front, file) = match text.split_once(':') {
            Some((front, file)) => (front, Some(file)),
            None => (text, None),
        };
        let (repo, revision) = match front.split_once('@') {
            Some((repo, revision)) => (repo, Some(revision)),
            None => (front, None),
        };
        let (org, name) = repo.split_once('/')?;
        let is_file = |w: &str| w.ends_with(".gguf") || w.ends_with(".safetensors");
        let sound = repo.len() <= MAX_REPO
            && is_word(org)
            && is_word(name)
            && revision.is_none_or(is_revision)
            && file.map_or(!is_file(front), is_inside);
        sound.then(|| Self {
            repo: repo.to_owned(),
            revision: revision.map(str::to_owned),
            file: file.map(str::to_owned),
        })
    }

    /// `org/name`.
    pub fn repo(&self) -> &str {
        &self.repo
    }

    /// The branch, tag or commit; `main` where none is named.
    pub fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or(MAIN)
    }

    /// What is named after the colon: a file, or a part of one's name.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Whether it names no revision.
    pub(super) fn takes_any_revision(&self) -> bool {
        self.revision.is_none()
    }

    /// The same model with `file` after the colon.
    #[must_use]
    pub(super) fn with_file(&self, file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..self.clone() }
    }
}

impl fmt::Display for HubId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.repo)?;
        if let Some(revision) = &self.revision {
            write!(f, "@{revision}")?;
        }
        self.file.as_ref().map_or(Ok(()), |file| write!(f, ":{file}"))
    }
}

/// An organisation or the name of a repository. `--` separates the two in the cache, so it stands in neither.
fn is_word(word: &str) -> bool {
    let edges = |c: char| c == '-' || c == '.';
    !word.is_empty()
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && !word.starts_with(edges)
        && !word.ends_with(edges)
        && !word.contains("--")
        && !word.contains("..")
}

/// A branch, tag or commit whose name is safe as a path.
fn is_revision(revision: &str) -> bool {
    let char_fits = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
    revision.chars().all(char_fits) && !revision.starts_with('-') && is_inside(revision)
}

/// Whether `text` is a commit, as the hub and its caches write them.
pub(super) fn is_commit(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_told_from_paths() {
        for id in ["a-b/c.d_1", "a/b:sub/c.gguf", "a/b@refs/pr/1", "a/b@v1.0:Q4_K_M", "1/2", "a/_b"] {
            assert_eq!(HubId::parse(id).unwrap().to_string(), id);
        }
        for path in [
            "",
            "model",
            "a/b/c",
            "./b",
            "../b",
            "/a",
            "a/",
            "a/b.gguf",
            "a/b.safetensors",
            "a/b:../c",
            "a/b:/c",
            "a b/c",
            "a/b:",
            "a/b@",
            "a/b@../c",
            "a/b@-x",
            "a/b:c\\d",
            "a/b:c\nd",
            "a--b/c",
            "a/b-",
            "C:/a/b",
            "C:\\a\\b",
        ] {
            assert_eq!(HubId::parse(path), None, "{path}");
        }
        assert_eq!(HubId::parse(&format!("a/{}", "b".repeat(95))), None);
    }

    #[test]
    fn main_is_meant_where_no_revision_is_named() {
        let id = HubId::parse("a/b").unwrap();
        assert_eq!((id.revision(), id.takes_any_revision()), ("main", true));
        assert_eq!(id.with_file("c.gguf").to_string(), "a/b:c.gguf");
    }
}
