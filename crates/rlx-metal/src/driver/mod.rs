//! The border to a GPU: what a driver must do, and nothing else.
//!
//! Two drivers exist: `objc` calls Metal on Apple systems, `simulator` runs the same kernels on the CPU and checks what they
//! touch. Everything above this border is one and the same code for both.

mod commands;
#[cfg(target_os = "macos")]
pub mod objc;
#[cfg(feature = "simulator")]
pub mod simulator;

use rlx_kernels::Kernel;
use rlx_kernels::geometry::DeviceLimits;
use rlx_kernels::source::Target;
use rlx_runtime::weights::WeightBytes;

use crate::error::Result;

pub use commands::{Command, CommandList, Dispatch, KernelRef, Range};

/// A device and its queue.
pub trait Driver: Send + Sync + 'static {
    /// Memory that both the host and the device reach.
    type Buffer: Memory;
    /// Compiled kernels.
    type Library: Send + Sync;
    /// A kernel that is ready to be launched.
    type Pipeline: Pipeline;
    /// A command buffer on its way.
    type Run: Run;

    /// For whom kernels are compiled.
    const TARGET: Target;

    /// What is known about the device.
    fn facts(&self) -> &DeviceFacts;

    /// Memory of `bytes` bytes (at least one), at an address that fits every dtype. All bytes are zero at first. `element` is the
    /// size of the smallest element that it ever holds, for drivers that tell neighbours apart.
    ///
    /// # Errors
    /// `Device` where memory cannot be had.
    fn buffer(&self, bytes: usize, element: usize) -> Result<Self::Buffer>;

    /// The device's view of bytes of the host, without a copy: a buffer, and where the bytes begin in it. `None` where the device
    /// cannot: its memory is its own, or the pages do not allow it.
    ///
    /// # Errors
    /// `Device` where the driver refuses what it should take.
    fn buffer_over(&self, bytes: &WeightBytes) -> Result<Option<(Self::Buffer, usize)>>;

    /// Compiles the text of a library.
    ///
    /// # Errors
    /// `Device` with the compiler's words.
    fn library(&self, text: &str) -> Result<Self::Library>;

    /// Makes a kernel of a library ready.
    ///
    /// # Errors
    /// `Device` where the library does not hold it, or the driver refuses it.
    fn pipeline(&self, library: &Self::Library, kernel: &Kernel) -> Result<Self::Pipeline>;

    /// Encodes `commands` into one command buffer and commits it. Called from one thread at a time.
    ///
    /// # Errors
    /// `Device`.
    fn commit(&self, commands: &CommandList<Self>) -> Result<Self::Run>
    where
        Self: Sized;

    /// The host writes a range before the next command buffer is committed: for drivers that know what was written.
    fn host_wrote(&self, _range: &Range<Self>)
    where
        Self: Sized,
    {
    }
}

/// What is known about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The name, as its maker gives it.
    pub name: String,
    /// Memory that models may use, in bytes; 0 where it is not known.
    pub memory_bytes: u64,
    /// What it can launch.
    pub limits: DeviceLimits,
    /// Families and other features.
    pub features: Vec<String>,
}

/// Memory of a device that the host reaches as well.
pub trait Memory: Send + Sync {
    /// The address of the first byte for the host; valid, and the same, for as long as this lives.
    fn address(&self) -> *mut u8;

    /// The size in bytes.
    fn bytes(&self) -> usize;
}

/// A kernel that is ready to be launched.
pub trait Pipeline: Send + Sync {
    /// The most threads that a threadgroup of this kernel may have.
    fn max_threads(&self) -> u32;
}

/// A command buffer on its way.
pub trait Run: Send {
    /// Waits once, until the device is done; gives the nanoseconds that it took, 0 where it does not tell.
    ///
    /// # Errors
    /// `Device` with the reason where the command buffer failed.
    fn wait(self) -> Result<u64>;
}
