//! Memory that host and device share.

use std::ffi::c_void;
use std::ptr::NonNull;

use block2::RcBlock;
use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_foundation::{NSPageSize, NSUInteger};
use objc2_metal::{MTLBuffer, MTLDevice, MTLResourceOptions};
use rlx_ir::bail;
use rlx_runtime::weights::WeightBytes;

use crate::driver::Memory;
use crate::driver::objc::refused;
use crate::error::{Error, Result};

/// Tracking would order dispatches that barriers already order, one buffer as a whole at a time.
const OPTIONS: MTLResourceOptions =
    MTLResourceOptions::StorageModeShared.union(MTLResourceOptions::HazardTrackingModeUntracked);

/// Memory that host and device share.
#[derive(Debug)]
pub struct ObjcBuffer {
    buffer: Retained<ProtocolObject<dyn MTLBuffer>>,
    address: NonNull<u8>,
    bytes: usize,
}

// SAFETY: address and size are fixed when the buffer is made, and no method of it is called afterwards: it is only handed to
// encoders, which count references, and counting is atomic. What lies at the address is guarded above this crate's drivers.
unsafe impl Send for ObjcBuffer {}
// SAFETY: as for `Send`.
unsafe impl Sync for ObjcBuffer {}

impl ObjcBuffer {
    pub(in super::super) fn new(device: &ProtocolObject<dyn MTLDevice>, bytes: usize) -> Result<Self> {
        let most = device.maxBufferLength();
        if bytes > most {
            bail!(Device, "a buffer of {bytes} bytes: the device makes them up to {most}");
        }
        let Some(buffer) = device.newBufferWithLength_options(bytes, OPTIONS) else {
            return Err(refused(&format!("a buffer of {bytes} bytes")));
        };
        Ok(Self::of(buffer))
    }

    /// The device's view of the pages of a file around `bytes`, and where `bytes` begin in it. `None` where they are not a
    /// file's, and where the device refuses them: the caller copies then.
    pub(in super::super) fn over(
        device: &ProtocolObject<dyn MTLDevice>,
        bytes: &WeightBytes,
    ) -> Option<(Self, usize)> {
        match bytes {
            WeightBytes::Mapped(mapping, _) if mapping.is_file() && !bytes.is_empty() => {}
            _ => return None,
        }
        let page = NSPageSize();
        let offset = bytes.as_ptr().addr() % page;
        let length = offset.checked_add(bytes.len())?.checked_next_multiple_of(page)?;
        if length > device.maxBufferLength() {
            return None;
        }
        let first = NonNull::new(bytes.as_ptr().wrapping_sub(offset).cast_mut())?;
        // The mapping lives for as long as Metal holds the block: a command buffer may outlive this buffer's owner.
        let held = bytes.clone();
        let deallocator = RcBlock::new(move |_: NonNull<c_void>, _: NSUInteger| {
            let _mapping = &held;
        });
        // SAFETY: a mapping covers whole pages, so the pages around `bytes` are valid from `first` on for `length` bytes;
        // the block keeps them so, and what it holds may go to other threads. They are for reading only: weights are
        // bound to no parameter that a kernel writes.
        let buffer = unsafe {
            device.newBufferWithBytesNoCopy_length_options_deallocator(
                first.cast(),
                length,
                OPTIONS,
                Some(&deallocator),
            )
        };
        Some((Self::of(buffer?), offset))
    }

    fn of(buffer: Retained<ProtocolObject<dyn MTLBuffer>>) -> Self {
        let (address, bytes) = (buffer.contents().cast(), buffer.length());
        Self { buffer, address, bytes }
    }

    pub(super) fn metal(&self) -> &ProtocolObject<dyn MTLBuffer> {
        &self.buffer
    }
}

impl Memory for ObjcBuffer {
    fn address(&self) -> *mut u8 {
        self.address.as_ptr()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}
