//! A file of the hub on its way into the cache: what was received so far, its length and its checksum.
//!
//! What can be checked by a SHA-256 goes to `ETAG.incomplete`, where a later process finds it and goes on. What cannot
//! goes to a file of this process alone, for nobody could tell who else has written to it.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind as Io, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rlx_ir::{ErrorKind, bail};
use sha2::{Digest, Sha256};

use crate::{Error, Result};

const BUFFER: usize = 256 << 10;

/// An error of reading or writing `path`.
pub(super) fn io_error(path: &Path, e: &std::io::Error) -> Error {
    let hint = match e.kind() {
        Io::StorageFull | Io::QuotaExceeded => "\nmake room there, or name another cache with HF_HUB_CACHE",
        Io::PermissionDenied | Io::ReadOnlyFilesystem => {
            "\nname a cache that can be written with HF_HUB_CACHE"
        }
        _ => "",
    };
    Error::new(ErrorKind::Io, format!("{}: {e}{hint}", path.display()))
}

/// A name beside `path` that no other process and no other thread uses.
pub(super) fn unique(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}.incomplete", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    name.into()
}

/// Whether an ETag is the SHA-256 of the file, in hex.
pub(super) fn is_sha256(etag: &str) -> bool {
    etag.len() == 64 && etag.bytes().all(|b| b.is_ascii_hexdigit())
}

/// What was received of a blob.
#[derive(Debug)]
pub(super) struct Incomplete {
    path: PathBuf,
    file: File,
    bytes: u64,
    /// Of what was received; `None` where there is nothing to compare it with.
    sha: Option<Sha256>,
    is_resumed: bool,
    keep: bool,
}

impl Incomplete {
    /// Opens what is there of the blob at `path`, or begins it.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn open(path: &Path, etag: &str) -> Result<Self> {
        let is_checked = is_sha256(etag);
        let path = if is_checked { path.with_file_name(format!("{etag}.incomplete")) } else { unique(path) };
        let failed = |e: std::io::Error| io_error(&path, &e);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        let mut file = options.open(&path).map_err(failed)?;
        let (mut bytes, mut sha) = (0, is_checked.then(Sha256::new));
        if let Some(sha) = &mut sha {
            let mut buffer = vec![0; BUFFER];
            loop {
                let n = file.read(&mut buffer).map_err(failed)?;
                if n == 0 {
                    break;
                }
                sha.update(&buffer[..n]);
                bytes += n as u64;
            }
        }
        Ok(Self { path, file, bytes, sha, is_resumed: bytes > 0, keep: is_checked })
    }

    /// Bytes received.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether an earlier process has received a part of them.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Throws away what was received.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.file.set_len(0).map_err(|e| io_error(&self.path, &e))?;
        self.bytes = 0;
        self.is_resumed = false;
        self.sha = self.sha.take().map(|_| Sha256::new());
        Ok(())
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| io_error(&self.path, &e))?;
        self.bytes += bytes.len() as u64;
        if let Some(sha) = &mut self.sha {
            sha.update(bytes);
        }
        Ok(())
    }

    /// Whether the bytes have the checksum that `etag` says, if it is one.
    pub(super) fn is_sound(&self, etag: &str) -> bool {
        self.sha.as_ref().is_none_or(|sha| {
            let hex: String = sha.clone().finalize().iter().map(|b| format!("{b:02x}")).collect();
            hex.eq_ignore_ascii_case(etag)
        })
    }

    /// Removes what was received, for it is wrong.
    pub(super) fn discard(mut self) {
        self.keep = false;
    }

    /// Makes it the blob at `path`.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn finish(self, path: &Path) -> Result<()> {
        let failed = |e: std::io::Error| io_error(path, &e);
        // Else a name could outlive a power failure that its bytes do not.
        self.file.sync_data().map_err(failed)?;
        match std::fs::rename(&self.path, path) {
            // Another process was quicker, and a system where that fails must not lose its file.
            Err(_) if path.is_file() => Ok(()),
            renamed => renamed.map_err(failed),
        }
    }
}

impl Drop for Incomplete {
    fn drop(&mut self) {
        if !self.keep || self.bytes == 0 {
            // After a rename there is nothing of this name.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The name of a blob: its ETag, which must be a plain file name.
///
/// # Errors
/// `Io` where the server sent another thing.
pub(super) fn name_of_etag(header: &str) -> Result<String> {
    let etag = header.trim();
    let etag = etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"');
    let char_fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let sound = (1..=128).contains(&etag.len()) && !etag.starts_with('.') && etag.chars().all(char_fits);
    if !sound {
        bail!(Io, "the server names the file's content {header:?}, which cannot be the name of a file");
    }
    Ok(etag.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("rlx-hub-blob-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn etags_are_names_of_files_or_refused() {
        assert_eq!(name_of_etag("\"abc\"").unwrap(), "abc");
        assert_eq!(name_of_etag("W/\"5f-12.a_b\"").unwrap(), "5f-12.a_b");
        for wrong in ["", "\"\"", "../x", "\"a/b\"", "\"..\"", "a b", "\"a:b\"", &"a".repeat(200)] {
            assert!(name_of_etag(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_can_be_checked_is_resumed() {
        let folder = folder("resume");
        let blob = folder.join(ABC);
        let mut first = Incomplete::open(&blob, ABC).unwrap();
        first.push(b"ab").unwrap();
        drop(first);
        let mut second = Incomplete::open(&blob, ABC).unwrap();
        assert_eq!((second.bytes(), second.is_resumed(), second.is_sound(ABC)), (2, true, false));
        second.push(b"c").unwrap();
        assert!(second.is_sound(ABC) && second.is_sound(&ABC.to_uppercase()));
        second.finish(&blob).unwrap();
        assert_eq!(std::fs::read(&blob).unwrap(), b"abc");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_cannot_be_checked_is_not() {
        let folder = folder("private");
        let blob = folder.join("abc");
        let mut first = Incomplete::open(&blob, "abc").unwrap();
        let mut second = Incomplete::open(&blob, "abc").unwrap();
        first.push(b"ab").unwrap();
        second.push(b"abc").unwrap();
        assert!(second.bytes() == 3 && second.is_sound("abc"));
        drop(first);
        second.finish(&blob).unwrap();
        assert_eq!(std::fs::read(&blob).unwrap(), b"abc");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn wrong_bytes_are_thrown_away() {
        let folder = folder("discard");
        let blob = folder.join(ABC);
        let mut blob_file = Incomplete::open(&blob, ABC).unwrap();
        blob_file.push(b"xyz").unwrap();
        blob_file.clear().unwrap();
        blob_file.push(b"abc").unwrap();
        assert!(blob_file.is_sound(ABC));
        blob_file.discard();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
