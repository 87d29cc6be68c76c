//! What a command buffer holds, before a driver encodes it.

use std::sync::Arc;

use rlx_kernels::Kernel;
use rlx_kernels::geometry::Geometry;

use super::Driver;

/// The commands of one command buffer, in order. Dispatches may overlap but for barriers.
pub struct CommandList<D: Driver> {
    /// The commands.
    pub commands: Vec<Command<D>>,
}

/// One command.
pub enum Command<D: Driver> {
    /// Begins a group with this label, for tools that show what a device does.
    PushGroup(Arc<str>),
    /// Ends the group that was begun last.
    PopGroup,
    /// Dispatches so far are over, and what they wrote is seen, before those that follow, as far as these buffers go.
    Barrier(Vec<Arc<D::Buffer>>),
    /// Launches a kernel.
    Dispatch(Dispatch<D>),
}

/// A launch of a kernel.
pub struct Dispatch<D: Driver> {
    /// The kernel.
    pub kernel: KernelRef,
    /// The kernel, ready.
    pub pipeline: Arc<D::Pipeline>,
    /// Its arguments, at index 0.
    pub args: Range<D>,
    /// Its buffers, from index 1 on; `None` for optional ones that are missing.
    pub bindings: Vec<Option<Range<D>>>,
    /// Threadgroups and threads.
    pub geometry: Geometry,
    /// Ranges of the arena that begin a new life with this launch: what they held before means nothing.
    pub begins: Vec<Range<D>>,
}

/// A range of a buffer, in bytes.
pub struct Range<D: Driver> {
    /// The buffer.
    pub buffer: Arc<D::Buffer>,
    /// The first byte.
    pub offset: usize,
    /// The number of bytes.
    pub bytes: usize,
}

impl<D: Driver> Clone for Range<D> {
    fn clone(&self) -> Self {
        Self { buffer: self.buffer.clone(), offset: self.offset, bytes: self.bytes }
    }
}

impl<D: Driver> Range<D> {
    /// Whether two ranges share a byte.
    pub fn overlaps(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.buffer, &other.buffer)
            && self.offset < other.offset + other.bytes
            && other.offset < self.offset + self.bytes
    }
}

impl<D: Driver> Default for CommandList<D> {
    fn default() -> Self {
        Self { commands: Vec::new() }
    }
}

/// A kernel of the manifest, or one that was written for a plan.
#[derive(Clone, Debug)]
pub enum KernelRef {
    /// Of the manifest.
    Listed(&'static Kernel),
    /// Written for a plan.
    Own(Arc<Kernel>),
}

impl std::ops::Deref for KernelRef {
    type Target = Kernel;

    fn deref(&self) -> &Kernel {
        match self {
            Self::Listed(kernel) => kernel,
            Self::Own(kernel) => kernel,
        }
    }
}
