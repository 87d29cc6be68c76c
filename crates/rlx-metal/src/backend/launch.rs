//! The one place where memory of the device becomes slices of the host.

use rlx_ir::bail;

use crate::driver::{Driver, Memory, Range};
use crate::error::{Error, Result};

fn inside<D: Driver>(range: &Range<D>) -> Result<*mut u8> {
    let end = range.offset.checked_add(range.bytes);
    if end.is_none_or(|end| end > range.buffer.bytes()) {
        bail!(Bug, "{} bytes at {} of a buffer of {}", range.bytes, range.offset, range.buffer.bytes());
    }
    Ok(range.buffer.address().wrapping_add(range.offset))
}

/// The bytes of a range. The caller sees to it that no run that writes there is on its way.
pub(super) fn bytes<D: Driver>(range: &Range<D>) -> Result<&[u8]> {
    let first = inside(range)?;
    // SAFETY: the buffer lives for as long as `range` does, its address is valid for its size, and the range lies inside.
    // Callers hold their context borrowed, and it waits for its run before it hands out memory; weights are written before
    // any run sees them.
    Ok(unsafe { std::slice::from_raw_parts(first, range.bytes) })
}

/// The bytes of a range, to be written. The caller owns the range alone: its context is borrowed mutably, or nobody else
/// knows the buffer yet.
pub(super) fn bytes_mut<D: Driver>(range: &mut Range<D>) -> Result<&mut [u8]> {
    let first = inside(range)?;
    // SAFETY: as in `bytes`; the caller's exclusive borrow keeps runs and other slices away.
    Ok(unsafe { std::slice::from_raw_parts_mut(first, range.bytes) })
}
