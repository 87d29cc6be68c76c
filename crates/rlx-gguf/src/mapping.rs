//! The bytes of a file, shared.

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use memmap2::Mmap;
use rlx_ir::{ErrorKind, bail};

use crate::{Error, Result, ffi, identity};

/// The bytes of a mapped file (or a buffer), shared: clones point to the same bytes.
#[derive(Clone)]
pub struct Mapping(Arc<Shared>);

struct Shared {
    source: Source,
    identity: String,
}

enum Source {
    Mapped(Mmap),
    Owned(Vec<u8>),
    Static(&'static [u8]),
}

impl Mapping {
    /// Maps the file at `path`. While it is mapped, nobody may change or shrink it: bytes would change under the reader,
    /// and the system ends a process that touches what is gone (SIGBUS).
    ///
    /// Errors: `NotFound`, `InvalidFile` where it is no regular file, `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |e: std::io::Error| {
            let kind = match e.kind() {
                std::io::ErrorKind::NotFound => ErrorKind::NotFound,
                _ => ErrorKind::Io,
            };
            Error::new(kind, format!("{}: {e}", path.display()))
        };
        // Before it is opened: that of a pipe waits until somebody writes.
        if !path.metadata().map_err(io)?.is_file() {
            bail!(InvalidFile, "{}: not a regular file", path.display());
        }
        let file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        let source = Source::Mapped(ffi::map(&file).map_err(io)?);
        Ok(Self(Arc::new(Shared { source, identity: identity::of_file(path, &metadata) })))
    }

    /// A text for these bytes that no others have in this process: the same each time that a file is opened which did not
    /// change, by whatever path.
    pub fn identity(&self) -> &str {
        &self.0.identity
    }

    /// Whether these are the pages of a mapped file: whole ones, the last one's end after the file's included.
    pub fn is_file(&self) -> bool {
        matches!(self.0.source, Source::Mapped(_))
    }

    /// Gives the pages that hold `range` (bytes from the start), and what the system maps together with them, back to the
    /// system, so that they stop counting as resident. The bytes stay valid: they are read from the file again when they
    /// are used.
    ///
    /// Does nothing for a buffer, and where the system cannot do it.
    pub fn release(&self, range: Range<usize>) {
        if let Source::Mapped(map) = &self.0.source {
            ffi::release(map, range);
        }
    }
}

impl Deref for Mapping {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0.source {
            Source::Mapped(map) => map,
            Source::Owned(bytes) => bytes,
            Source::Static(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Mapping {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Shared { source: Source::Owned(bytes), identity: identity::unique("buffer") }))
    }
}

impl From<&'static [u8]> for Mapping {
    fn from(bytes: &'static [u8]) -> Self {
        let identity = format!("static {:p}+{}", bytes.as_ptr(), bytes.len());
        Self(Arc::new(Shared { source: Source::Static(bytes), identity }))
    }
}

impl std::fmt::Debug for Mapping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Mapping({} bytes)", self.len())
    }
}
