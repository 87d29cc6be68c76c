//! A command buffer on its way.

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLCommandBuffer, MTLCommandBufferStatus};
use rlx_ir::bail;

use crate::driver::Run;
use crate::error::{Error, Result};

/// A command buffer on its way.
#[derive(Debug)]
pub struct ObjcRun(Retained<ProtocolObject<dyn MTLCommandBuffer>>);

// SAFETY: Metal lets any thread use a command buffer, one at a time. A run owns its command buffer, and is not `Sync`.
unsafe impl Send for ObjcRun {}

impl ObjcRun {
    /// Commits `buffer`, whose encoders have ended.
    pub(in super::super) fn commit(buffer: Retained<ProtocolObject<dyn MTLCommandBuffer>>) -> Self {
        buffer.commit();
        Self(buffer)
    }
}

impl Run for ObjcRun {
    /// The only call that blocks is the first: status and times are there once it returns, also where the device was reset.
    fn wait(self) -> Result<u64> {
        autoreleasepool(|_| {
            self.0.waitUntilCompleted();
            if self.0.status() == MTLCommandBufferStatus::Completed {
                // Seconds; a cast of a negative number or NaN gives 0.
                return Ok(((self.0.GPUEndTime() - self.0.GPUStartTime()) * 1e9) as u64);
            }
            match self.0.error() {
                Some(e) => bail!(Device, "{} ({} {})", e.localizedDescription(), e.domain(), e.code()),
                None => bail!(Device, "the command buffer failed without a reason"),
            }
        })
    }
}
