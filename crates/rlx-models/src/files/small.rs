//! Reading the small files of a model whole.
//!
//! Files are hostile: one may claim to be larger than memory, or be a pipe that never ends.

use std::fs::File;
use std::io::{ErrorKind as IoKind, Read};
use std::path::Path;

use rlx_ir::{ErrorKind, bail};

use crate::{Error, Result};

/// The most bytes of a config.
pub(super) const CONFIG_BYTES: u64 = 16 << 20;

/// The most bytes of a file, by its name's end: far above what any model has.
const LIMITS: [(&str, u64); 4] = [
    // The largest vocabularies take 40 MB.
    ("tokenizer.json", 512 << 20),
    // A line for each tensor.
    (".index.json", 256 << 20),
    (".json", CONFIG_BYTES),
    (".jinja", 1 << 20),
];

/// That of other files: references of a cache, tokens.
const OTHERS: u64 = 1 << 20;

/// The bytes of a regular file that is at most as long as files of its name may be.
///
/// # Errors
/// `NotFound`, `Io`; `InvalidFile` where it is no regular file, or too long: it names size and limit.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let limit = LIMITS.iter().find(|(end, _)| name.ends_with(end)).map_or(OTHERS, |(_, limit)| *limit);
    read_up_to(path, limit)
}

/// [`read`] with another limit, in bytes.
pub(crate) fn read_up_to(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let io = |e: std::io::Error| error(path, &e);
    let too_long = |bytes: u64| {
        let message = format!("{}: {bytes} bytes, and at most {limit} are read", path.display());
        Err(Error::new(ErrorKind::InvalidFile, message))
    };
    // Asked before opening: to open a pipe waits for who writes to it.
    let found = std::fs::metadata(path).map_err(io)?;
    if !found.is_file() {
        bail!(InvalidFile, "{}: not a regular file", path.display());
    }
    if found.len() > limit {
        return too_long(found.len());
    }
    let mut bytes = Vec::new();
    File::open(path).map_err(io)?.take(limit + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > limit {
        return too_long(bytes.len() as u64);
    }
    Ok(bytes)
}

/// [`read`], or `None` if there is no such file.
pub(crate) fn read_optional(path: &Path) -> Result<Option<Vec<u8>>> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// [`read`] as text.
///
/// # Errors
/// As [`read`]; `InvalidFile` for what is no UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    match String::from_utf8(read(path)?) {
        Ok(text) => Ok(text),
        Err(e) => bail!(InvalidFile, "{}: {e}", path.display()),
    }
}

fn error(path: &Path, e: &std::io::Error) -> Error {
    let kind = match e.kind() {
        // A part of the path that is a file is no folder with the file in it.
        IoKind::NotFound | IoKind::NotADirectory => ErrorKind::NotFound,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("rlx-small-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_file_that_is_too_long_is_refused_unread_with_size_and_limit() {
        let folder = Folder::new("sparse");
        for (name, limit) in [
            ("modules.json", "16777216"),
            ("tokenizer.json", "536870912"),
            ("chat_template.jinja", "1048576"),
        ] {
            let path = folder.0.join(name);
            // Sparse: it takes no room on the disk.
            File::create(&path).unwrap().set_len(20 << 30).unwrap();
            let e = read(&path).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidFile);
            assert!(e.message().contains(name) && e.message().contains("21474836480 bytes"), "{e}");
            assert!(e.message().contains(limit), "{e}");
        }
    }

    #[test]
    fn a_file_of_the_longest_length_is_read() {
        let folder = Folder::new("edge");
        let path = folder.0.join("a.json");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_up_to(&path, 5).unwrap(), b"12345");
        assert!(read_up_to(&path, 4).is_err());
        assert_eq!(read_optional(&folder.0.join("b.json")).unwrap(), None);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_regular_file_is_refused_and_not_waited_for() {
        let folder = Folder::new("pipe");
        let pipe = folder.0.join("modules.json");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [pipe.as_path(), Path::new("/dev/zero"), &folder.0] {
            let e = read(path).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidFile);
            assert!(e.message().contains("not a regular file"), "{e}");
        }
    }
}
