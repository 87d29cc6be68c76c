//! Calls into the system's memory mapping.

use std::fs::File;
use std::ops::Range;

use memmap2::Mmap;

/// The largest piece of the page cache, in bytes, aligned to itself. Where the cache holds pieces larger than a page, a
/// fault maps all of one (Linux since 6.18), also what was given back of it before.
#[cfg(unix)]
const PIECE_BYTES: usize = 2 << 20;

/// Maps a whole file for reading.
pub(crate) fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: the mapping is read-only, and nothing in this process writes to the file. That no other process changes or
    // shrinks it meanwhile cannot be enforced: it is a duty of whoever opens it, stated at `Mapping::open` and
    // `Gguf::open`.
    unsafe { Mmap::map(file) }
}

/// Gives all pieces of the page cache that `range` touches back to the system; their bytes are read from the file again
/// when used, so that neighbours lose nothing but time.
#[cfg(unix)]
pub(crate) fn release(map: &Mmap, range: Range<usize>) {
    let start = range.start / PIECE_BYTES * PIECE_BYTES;
    let end = range.end.min(map.len()).next_multiple_of(PIECE_BYTES).min(map.len());
    if start < end {
        // SAFETY: the pages belong to a read-only mapping of a file, so that nothing written is lost: the next access
        // reads the same bytes from the file, whichever pages are taken. The range is inside the mapping.
        let _ = unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
    }
}

/// Does nothing where the system has no such call.
#[cfg(not(unix))]
pub(crate) fn release(_map: &Mmap, _range: Range<usize>) {}
