//! Writing a file so that it appears whole or not at all, and never in the place of something that is no file.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use rlx_ir::{ErrorKind, bail};

use crate::{Error, Result};

/// A new file that is written beside its path and put there by [`finish`](Self::finish). Dropped before that, it removes
/// what it wrote; a process that is ended by a signal leaves a file that ends in `.partial`.
///
/// Readers of a file that is replaced keep the old one. It gets the permissions of any new file.
#[derive(Debug)]
pub struct OutputFile {
    /// As it was asked for: the one that messages name.
    path: PathBuf,
    /// Behind links.
    target: PathBuf,
    temporary: Option<PathBuf>,
    file: BufWriter<File>,
}

impl OutputFile {
    /// A file that will be at `path`. A link is followed: the file that it points to is replaced.
    ///
    /// Errors: `InvalidArgument` as [`target`](Self::target); `Io` where the folder takes no new file.
    pub fn create(path: &Path) -> Result<Self> {
        let target = Self::target(path)?;
        match create_beside(&target) {
            Ok((temporary, file)) => Ok(Self {
                path: path.to_owned(),
                target,
                temporary: Some(temporary),
                file: BufWriter::with_capacity(1 << 20, file),
            }),
            Err(e) => bail!(Io, "{}: cannot create: {e}", path.display()),
        }
    }

    /// The file that would be replaced at `path`, or `path` itself where there is none. The rule for every path that is
    /// written to.
    ///
    /// Errors: `InvalidArgument` where there is something else than a file (a folder, a device, a pipe), or a link to
    /// nothing.
    pub fn target(path: &Path) -> Result<PathBuf> {
        match path.metadata() {
            Ok(found) if found.is_file() => Ok(path.canonicalize().unwrap_or(path.to_owned())),
            Ok(_) => {
                bail!(
                    InvalidArgument,
                    "{}: it is there, and is no file that could be replaced",
                    path.display()
                )
            }
            Err(_) if path.is_symlink() => {
                bail!(InvalidArgument, "{}: it is a link to what is not there", path.display())
            }
            Err(_) => Ok(path.to_owned()),
        }
    }

    /// Where it will be, as it was asked for.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the next bytes. Errors: `Io`.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| failed(&self.path, &e))
    }

    /// Puts the file in its place. Errors: `Io`.
    pub fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(|e| failed(&self.path, &e))?;
        self.file.get_ref().sync_all().map_err(|e| failed(&self.path, &e))?;
        if let Some(temporary) = &self.temporary {
            std::fs::rename(temporary, &self.target).map_err(|e| failed(&self.path, &e))?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            // Best effort: there is nobody left to tell.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

fn failed(path: &Path, e: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{}: cannot write: {e}", path.display()))
}

/// A new file with a name of its own in the folder of `path`.
fn create_beside(path: &Path) -> std::io::Result<(PathBuf, File)> {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let mut name = path.as_os_str().to_owned();
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}-{count}.partial", std::process::id()));
    let temporary = PathBuf::from(name);
    let file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
    Ok((temporary, file))
}

/// Whether two paths lead to one file, be it through links; `false` where one leads nowhere.
pub fn same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let id = |path: &Path| path.metadata().ok().map(|m| (m.dev(), m.ino()));
        id(a).is_some_and(|a| id(b) == Some(a))
    }
    #[cfg(not(unix))]
    {
        a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
    }
}
