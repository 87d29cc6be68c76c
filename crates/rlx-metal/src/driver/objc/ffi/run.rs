//! A command buffer on its way.

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLCommandBuffer, MTLCommandBufferStatus, MTLEvent, MTLSharedEvent};

use crate::driver::Run;

/// A command buffer on its way.
#[derive(Debug)]
pub struct ObjcRun {
    buffer: Retained<ProtocolObject<dyn MTLCommandBuffer>>,
    event: Retained<ProtocolObject<dyn MTLSharedEvent>>,
    value: u64,
}

// SAFETY: Metal lets any thread use a command buffer, one at a time. A run owns its command buffer, and is not `Sync`.
unsafe impl Send for ObjcRun {}

impl ObjcRun {
    /// Commits `buffer`, whose encoders have ended, to raise `event` to `value` at its end.
    pub(in super::super) fn commit(
        buffer: Retained<ProtocolObject<dyn MTLCommandBuffer>>,
        event: &Retained<ProtocolObject<dyn MTLSharedEvent>>,
        value: u64,
    ) -> Self {
        let counter: &ProtocolObject<dyn MTLEvent> = ProtocolObject::from_ref(&**event);
        buffer.encodeSignalEvent_value(counter, value);
        buffer.commit();
        Self { buffer, event: event.clone(), value }
    }

    /// The status, which comes to the host a little after the event.
    fn status(&self) -> MTLCommandBufferStatus {
        if self.event.signaledValue() >= self.value {
            self.buffer.waitUntilCompleted();
        }
        self.buffer.status()
    }
}

impl Run for ObjcRun {
    fn failure(&self) -> Option<String> {
        autoreleasepool(|_| {
            if self.status() != MTLCommandBufferStatus::Error {
                return None;
            }
            Some(match self.buffer.error() {
                Some(e) => format!("{} ({} {})", e.localizedDescription(), e.domain(), e.code()),
                None => "the command buffer failed without a reason".to_owned(),
            })
        })
    }

    fn device_ns(&self) -> u64 {
        if self.status() != MTLCommandBufferStatus::Completed {
            return 0;
        }
        // Seconds; a cast of a negative number or NaN gives 0.
        ((self.buffer.GPUEndTime() - self.buffer.GPUStartTime()) * 1e9) as u64
    }
}
