//! Writing the cache. Every file appears under its name at once, so that a reader never sees a part of one.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::blob::{io_error, unique};
use super::cache::{Snapshot, folder_name};
use super::id::HubId;
use crate::Result;
use crate::files::small;

/// A repository of the cache that is written to.
#[derive(Debug)]
pub(super) struct Store {
    repo: PathBuf,
    locks: PathBuf,
}

impl Store {
    /// The repository `id` in the cache at `cache`; makes its folders.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn new(cache: &Path, id: &HubId) -> Result<Self> {
        let repo = cache.join(folder_name(id));
        make(&repo.join("blobs"))?;
        Ok(Self { repo, locks: cache.join(".locks").join(folder_name(id)) })
    }

    /// The files of a commit.
    pub(super) fn snapshot(&self, commit: &str) -> Snapshot {
        Snapshot::new(&self.repo, commit)
    }

    /// Where the content `etag` is, or would be.
    pub(super) fn blob(&self, etag: &str) -> PathBuf {
        self.repo.join("blobs").join(etag)
    }

    /// Waits until no other process downloads the content `etag`. The Python client uses the same lock.
    ///
    /// `None` where the file system has no locks; two downloads at once then cost time and do no harm.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn lock(&self, etag: &str, file: &str) -> Result<Option<File>> {
        make(&self.locks)?;
        let path = self.locks.join(format!("{etag}.lock"));
        let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let lock = opened.map_err(|e| io_error(&path, &e))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(lock)),
            Err(TryLockError::WouldBlock) => {
                tracing::warn!("another process downloads {file}: waiting for it");
                lock.lock().map_err(|e| io_error(&path, &e))?;
                Ok(Some(lock))
            }
            Err(TryLockError::Error(e)) => {
                tracing::debug!("{}: {e}", path.display());
                Ok(None)
            }
        }
    }

    /// Puts the content `etag` into a snapshot under `name`: as a link, or where links cannot be made as a copy.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn link(&self, snapshot: &Snapshot, name: &str, etag: &str) -> Result<()> {
        let (blob, path) = (self.blob(etag), snapshot.path(name));
        let failed = |e: std::io::Error| io_error(&path, &e);
        make(path.parent().unwrap_or(&path))?;
        let new = unique(&path);
        let up = "../".repeat(name.split('/').count() + 1);
        let linked = symlink(Path::new(&format!("{up}blobs/{etag}")), &new)
            .or_else(|_| fs::hard_link(&blob, &new))
            .or_else(|_| fs::copy(&blob, &new).map(drop));
        let placed = linked.and_then(|()| fs::rename(&new, &path));
        if placed.is_err() {
            let _ = fs::remove_file(&new);
            // Another process was quicker.
            if path.is_file() {
                return Ok(());
            }
        }
        placed.map_err(failed)
    }

    /// Writes which commit a branch or tag is.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn set_ref(&self, revision: &str, commit: &str) -> Result<()> {
        let path = self.repo.join("refs").join(revision);
        if revision == commit || small::read_text(&path).is_ok_and(|found| found == commit) {
            return Ok(());
        }
        make(path.parent().unwrap_or(&path))?;
        let new = unique(&path);
        let written = fs::write(&new, commit).and_then(|()| fs::rename(&new, &path));
        written.map_err(|e| {
            let _ = fs::remove_file(&new);
            io_error(&path, &e)
        })
    }

    /// Writes that a commit has no file `name`.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn set_absent(&self, snapshot: &Snapshot, name: &str) -> Result<()> {
        let path = snapshot.absence_path(name);
        if path.exists() {
            return Ok(());
        }
        make(path.parent().unwrap_or(&path))?;
        File::create(&path).map(drop).map_err(|e| io_error(&path, &e))
    }
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| io_error(folder, &e))
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Path, link: &Path) -> std::io::Result<()> {
    let target: PathBuf = target.components().collect();
    std::os::windows::fs::symlink_file(target, link)
}

#[cfg(not(any(unix, windows)))]
fn symlink(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}
