//! Calls into the system's memory mapping.

use std::fs::File;
use std::ops::Range;

use memmap2::Mmap;

/// The smallest page in use, in bytes. Where pages are larger, the call takes in the rest of the pages at both ends,
/// which costs their neighbours a second read and nothing else.
#[cfg(unix)]
const PAGE_BYTES: usize = 4 << 10;

/// Maps a whole file for reading.
pub(crate) fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is read-only, and nothing in this process writes to the file. That no other process changes or
    // shrinks it meanwhile cannot be enforced: it is a duty of whoever opens it, stated at `Mapping::open` and
    // `Gguf::open`.
    unsafe { Mmap::map(file) }
}

/// Gives the whole pages inside `range` back to the system; their bytes are read from the file again when used.
#[cfg(unix)]
pub(crate) fn release(map: &Mmap, range: Range<usize>) {
    let Some(start) = range.start.checked_next_multiple_of(PAGE_BYTES) else { return };
    let end = range.end.min(map.len()) / PAGE_BYTES * PAGE_BYTES;
    if start < end {
        // SAFETY: the pages belong to a read-only mapping of a file, so that nothing written is lost: the next access
        // reads the same bytes from the file, whichever pages are taken. The range is inside the mapping.
        let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
    }
}

/// Does nothing where the system has no such call.
#[cfg(not(unix))]
pub(crate) fn release(_map: &Mmap, _range: Range<usize>) {}
