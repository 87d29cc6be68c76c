//! Metal through Objective-C.
//!
//! - Memory is shared by host and device and not tracked for hazards: barriers within a command buffer are computed above, and
//!   a fence orders each command buffer behind the one before.
//! - Command buffers retain what they use. A list is only borrowed for the commit, so nothing else could keep its buffers
//!   until the device is done; the cost is one count for each binding.
//! - Every call that makes autoreleased objects runs in a pool of its own.
//!
//! What needs `unsafe` is in `ffi`; facts and the compiler's options are beside it.

mod facts;
mod ffi;
mod library;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_metal::{MTLCommandQueue, MTLDevice, MTLFence, MTLLibrary};
use rlx_ir::{ErrorKind, bail};
use rlx_kernels::Kernel;
use rlx_kernels::source::Target;
use rlx_runtime::weights::WeightBytes;

use super::{CommandList, DeviceFacts, Driver};
use crate::error::{Error, Result};

pub use ffi::buffer::ObjcBuffer;
pub use ffi::pipeline::ObjcPipeline;
pub use ffi::run::ObjcRun;

/// The GPU of this machine.
#[derive(Debug)]
pub struct ObjcDriver {
    device: Retained<ProtocolObject<dyn MTLDevice>>,
    queue: Retained<ProtocolObject<dyn MTLCommandQueue>>,
    /// Orders command buffers, since buffers are not tracked.
    order: Retained<ProtocolObject<dyn MTLFence>>,
    /// Whether a command buffer updates `order`: nothing says that a wait ends where none does.
    ordered: AtomicBool,
    facts: DeviceFacts,
}

impl ObjcDriver {
    /// The system's default device.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where there is none, or it lacks what kernels need; `Device` where it cannot be opened.
    pub fn system_default() -> Result<Self> {
        autoreleasepool(|_| {
            let Some(device) = ffi::default_device() else {
                bail!(UnsupportedOnDevice, "this system has no Metal device");
            };
            let facts = facts::of(&device);
            if let Some(missing) = facts::missing(&device) {
                bail!(UnsupportedOnDevice, "{}: {missing}", facts.name);
            }
            let queue = device.newCommandQueue().ok_or_else(|| refused("a command queue"))?;
            let order = device.newFence().ok_or_else(|| refused("a fence"))?;
            Ok(Self { device, queue, order, ordered: AtomicBool::new(false), facts })
        })
    }
}

/// The error for an object that the device did not make.
fn refused(what: &str) -> Error {
    Error::new(ErrorKind::Device, format!("Metal did not make {what}"))
}

impl Driver for ObjcDriver {
    type Buffer = ObjcBuffer;
    type Library = Retained<ProtocolObject<dyn MTLLibrary>>;
    type Pipeline = ObjcPipeline;
    type Run = ObjcRun;

    const TARGET: Target = Target::Metal;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn buffer(&self, bytes: usize, _element: usize) -> Result<ObjcBuffer> {
        // Metal clears what it makes.
        autoreleasepool(|_| ObjcBuffer::new(&self.device, bytes.max(1)))
    }

    fn buffer_over(&self, bytes: &WeightBytes) -> Result<Option<(ObjcBuffer, usize)>> {
        Ok(autoreleasepool(|_| ObjcBuffer::over(&self.device, bytes)))
    }

    fn library(&self, text: &str) -> Result<Self::Library> {
        autoreleasepool(|_| library::compile(&self.device, text))
    }

    fn pipeline(&self, library: &Self::Library, kernel: &Kernel) -> Result<ObjcPipeline> {
        autoreleasepool(|_| ObjcPipeline::new(&self.device, library, kernel, self.facts.limits))
    }

    fn commit(&self, commands: &CommandList<Self>) -> Result<ObjcRun> {
        autoreleasepool(|_| {
            ffi::encoder::check(commands)?;
            let buffer = self.queue.commandBuffer().ok_or_else(|| refused("a command buffer"))?;
            let earlier = self.ordered.load(Relaxed).then_some(&*self.order);
            ffi::encoder::encode(&buffer, earlier, &self.order, commands)?;
            self.ordered.store(true, Relaxed);
            Ok(ObjcRun::commit(buffer))
        })
    }
}
