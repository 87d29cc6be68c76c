//! Working memory of a thread, kept from call to call.

use std::cell::RefCell;

use bytemuck::Pod;

use super::matmul::Line;

/// What a thread keeps: larger buffers are given back to the system after use.
const KEPT_BYTES: usize = 4 << 20;

thread_local! {
    static KEPT: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f` with `len` elements of scratch, aligned to 64 bytes, holding any values.
pub(crate) fn with_scratch<T: Pod, R>(len: usize, f: impl FnOnce(&mut [T]) -> R) -> R {
    let bytes = len.saturating_mul(size_of::<T>());
    let lines = bytes.div_ceil(64);
    let mut buffer = KEPT.with_borrow_mut(Vec::pop).unwrap_or_default();
    if buffer.len() < lines {
        // A new one rather than a longer one: the old values need no copy.
        buffer = vec![bytemuck::Zeroable::zeroed(); lines];
    }
    let all: &mut [u8] = bytemuck::cast_slice_mut(&mut buffer);
    let result = f(bytemuck::cast_slice_mut(&mut all[..bytes]));
    if buffer.len() * 64 <= KEPT_BYTES {
        KEPT.with_borrow_mut(|kept| kept.push(buffer));
    }
    result
}
