//! Texts that tell the bytes of one file from those of others.

use std::fs::Metadata;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The coarsest step of the times that file systems keep.
const TIME_STEP: Duration = Duration::from_secs(2);

/// An identity for bytes of the kind `what` that nothing else in this process has: `what #7`.
pub fn unique(what: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{what} #{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The identity of the file at `path`: which file it is, its size, and when it changed.
///
/// A file that changed just now may change again in the same step of its time, so it gets an identity of its own. So does
/// one whose time cannot be had or lies in the future.
pub(crate) fn of_file(path: &Path, metadata: &Metadata) -> String {
    let stamp = stamp(path, metadata);
    match stamp.filter(|(_, changed)| changed.elapsed().is_ok_and(|age| age > TIME_STEP)) {
        Some((stamp, _)) => format!("file {stamp}, {} bytes", metadata.len()),
        None => unique("file"),
    }
}

/// Which file it is and when it changed, as a text; and when, as a time.
#[cfg(unix)]
fn stamp(_path: &Path, metadata: &Metadata) -> Option<(String, SystemTime)> {
    use std::os::unix::fs::MetadataExt;
    // The time of the last change of any kind cannot be set back, unlike that of the contents.
    let (seconds, nanos) = (metadata.ctime(), metadata.ctime_nsec());
    let changed = Duration::new(seconds.try_into().ok()?, nanos.try_into().ok()?);
    let stamp = format!("{}:{} of {seconds}.{nanos}", metadata.dev(), metadata.ino());
    Some((stamp, SystemTime::UNIX_EPOCH.checked_add(changed)?))
}

/// Which file it is and when it changed, as a text; and when, as a time.
#[cfg(not(unix))]
fn stamp(path: &Path, metadata: &Metadata) -> Option<(String, SystemTime)> {
    let changed = metadata.modified().ok()?;
    let since = changed.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some((format!("{} of {since:?}", path.canonicalize().ok()?.display()), changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_file_is_the_same_each_time_and_a_new_one_never() {
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let of = |path: &Path| of_file(path, &path.metadata().unwrap());
        let changed = stamp(&old, &old.metadata().unwrap()).unwrap().1;
        if changed.elapsed().is_ok_and(|age| age > TIME_STEP) {
            assert_eq!(of(&old), of(&old));
        }
        let path = std::env::temp_dir().join(format!("rlx-gguf-identity-{}", std::process::id()));
        std::fs::write(&path, "new").unwrap();
        let (first, second) = (of(&path), of(&path));
        std::fs::remove_file(&path).unwrap();
        assert_ne!(first, second);
    }
}
