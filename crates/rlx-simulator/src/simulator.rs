//! Buffers, and dispatches over them.

use std::ops::Range;

use rlx_kernels::geometry::{Geometry, SIMD_WIDTH};
use rlx_kernels::manifest::Scratch;
use rlx_kernels::{Access, Kernel};

use crate::compiler::{Library, Mode};
use crate::error::{Error, Result};
use crate::fault::Fault;
use crate::ffi::{self, Cell, Counts, MAX_ARRAYS, Memory, Run};

/// A buffer of a [`Simulator`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(usize);

/// A range of a buffer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The buffer.
    pub buffer: BufferId,
    /// The first byte.
    pub offset: usize,
    /// The number of bytes.
    pub bytes: usize,
}

/// A dispatch.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Threadgroups and threads.
    pub geometry: Geometry,
    /// The bytes of the kernel's argument struct.
    pub args: &'a [u8],
    /// A range for each buffer of the kernel; `None` for optional ones that are missing.
    pub bindings: &'a [Option<Slice>],
    /// The order in which threads and threadgroups take turns; 0 is their natural order.
    pub seed: u64,
}

#[derive(Debug)]
struct Buffer {
    memory: Memory,
    cells: Vec<Cell>,
    written: Vec<u8>,
    granule: usize,
    ordered: u32,
}

impl Buffer {
    fn new(bytes: usize, granule: usize) -> Result<Self> {
        Ok(Self {
            memory: Memory::new(bytes)?,
            cells: vec![Cell::default(); bytes.div_ceil(granule)],
            written: vec![0; bytes],
            granule,
            ordered: 0,
        })
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.memory.bytes_mut()[offset..][..bytes.len()].copy_from_slice(bytes);
        self.written[offset..][..bytes.len()].fill(1);
    }
}

/// A GPU: buffers, and the dispatches that ran.
#[derive(Debug, Default)]
pub struct Simulator {
    buffers: Vec<Buffer>,
    /// Places of buffers that were freed.
    free: Vec<usize>,
    /// The number of the last dispatch; they count from 1.
    serial: u32,
}

/// The most threads of a threadgroup.
const MAX_THREADS: u32 = 1024;

impl Simulator {
    /// A GPU without buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer whose bytes nobody has written.
    ///
    /// Races are told apart by `granule` bytes: the smallest size of an element that the buffer ever holds.
    ///
    /// # Errors
    /// `InvalidArgument` where the granule is not 1, 2, 4 or 8; `Io` where memory is short.
    pub fn buffer(&mut self, bytes: usize, granule: usize) -> Result<BufferId> {
        if ![1, 2, 4, 8].contains(&granule) {
            rlx_ir::bail!(InvalidArgument, "a granule of {granule} bytes");
        }
        let buffer = Buffer::new(bytes, granule)?;
        if let Some(at) = self.free.pop() {
            self.buffers[at] = buffer;
            return Ok(BufferId(at));
        }
        self.buffers.push(buffer);
        Ok(BufferId(self.buffers.len() - 1))
    }

    /// Ends a buffer's life. Its id must not be used again.
    ///
    /// # Errors
    /// `Io` where memory is short.
    pub fn free(&mut self, buffer: BufferId) -> Result<()> {
        self.buffers[buffer.0] = Buffer::new(0, 1)?;
        self.free.push(buffer.0);
        Ok(())
    }

    /// Where the host finds a buffer's bytes: the same address until it is freed. What is written there must be said to
    /// [`host_wrote`](Self::host_wrote), and nothing may be read or written there while a dispatch runs.
    pub fn host_address(&self, buffer: BufferId) -> *mut u8 {
        self.buffers[buffer.0].memory.host()
    }

    /// The host wrote a range at its own address.
    ///
    /// # Errors
    /// `InvalidArgument` where the range does not fit.
    pub fn host_wrote(&mut self, slice: Slice) -> Result<()> {
        let range = self.range(slice)?;
        self.buffers[slice.buffer.0].written[range].fill(1);
        Ok(())
    }

    /// A buffer with these bytes.
    ///
    /// # Errors
    /// As [`buffer`](Self::buffer).
    pub fn buffer_of(&mut self, bytes: &[u8], granule: usize) -> Result<BufferId> {
        let id = self.buffer(bytes.len(), granule)?;
        self.buffers[id.0].write(0, bytes);
        Ok(id)
    }

    /// All of a buffer.
    pub fn whole(&self, buffer: BufferId) -> Slice {
        Slice { buffer, offset: 0, bytes: self.buffers[buffer.0].written.len() }
    }

    fn range(&self, slice: Slice) -> Result<Range<usize>> {
        let size = self.buffers[slice.buffer.0].written.len();
        match slice.offset.checked_add(slice.bytes) {
            Some(end) if end <= size => Ok(slice.offset..end),
            _ => rlx_ir::bail!(
                InvalidArgument,
                "{} bytes from {} on, of a buffer of {size} bytes",
                slice.bytes,
                slice.offset
            ),
        }
    }

    /// The host writes bytes.
    ///
    /// # Errors
    /// `InvalidArgument` where they do not fit.
    pub fn write(&mut self, buffer: BufferId, offset: usize, bytes: &[u8]) -> Result<()> {
        self.range(Slice { buffer, offset, bytes: bytes.len() })?;
        self.buffers[buffer.0].write(offset, bytes);
        Ok(())
    }

    /// The host reads bytes.
    ///
    /// # Errors
    /// `InvalidArgument` where the range does not fit.
    pub fn read(&self, slice: Slice) -> Result<Vec<u8>> {
        Ok(self.buffers[slice.buffer.0].memory.bytes()[self.range(slice)?].to_vec())
    }

    /// The bytes of a range that somebody wrote, in the hooked mode.
    ///
    /// # Errors
    /// `InvalidArgument` where the range does not fit.
    pub fn written(&self, slice: Slice) -> Result<usize> {
        let range = self.range(slice)?;
        Ok(self.buffers[slice.buffer.0].written[range].iter().filter(|b| **b != 0).count())
    }

    /// Begins a new life of a range: what was written counts as unwritten.
    ///
    /// # Errors
    /// `InvalidArgument` where the range does not fit.
    pub fn forget(&mut self, slice: Slice) -> Result<()> {
        let range = self.range(slice)?;
        self.buffers[slice.buffer.0].written[range].fill(0);
        Ok(())
    }

    /// All dispatches so far are over before those that follow.
    pub fn barrier(&mut self) {
        for at in 0..self.buffers.len() {
            self.barrier_for(BufferId(at));
        }
    }

    /// All dispatches so far are over before those that follow, as far as `buffer` is concerned.
    pub fn barrier_for(&mut self, buffer: BufferId) {
        self.buffers[buffer.0].ordered = self.serial + 1;
    }

    /// Runs a dispatch of a kernel of `library`.
    ///
    /// # Errors
    /// The first fault. Bytes that were written before it stay.
    pub fn dispatch(&mut self, library: &Library, launch: &Launch<'_>) -> Result<Counts, Fault> {
        let kernel = launch.kernel;
        let refuse = |message: String| Fault::launch(&kernel.name, message);
        let Some(entry) = library.object.symbol(&kernel.name) else {
            return Err(refuse("the library does not hold it".into()));
        };
        self.check(launch).map_err(refuse)?;
        let broken = |e: Error| Fault::launch(&kernel.name, e);
        self.serial += 1;
        // Arguments lie in a buffer of their own, at index 0.
        let mut args = Buffer::new(launch.args.len(), 4).map_err(broken)?;
        args.write(0, launch.args);
        let args_at = self.buffers.len();
        self.buffers.push(args);
        let result = self.run(library, launch, entry, args_at).map_err(broken);
        self.buffers.truncate(args_at);
        let (code, message, counts) = result?;
        match Fault::from_code(code, &kernel.name, &message) {
            Some(fault) => Err(fault),
            None => Ok(counts),
        }
    }

    fn run(
        &mut self,
        library: &Library,
        launch: &Launch<'_>,
        entry: ffi::Entry,
        args_at: usize,
    ) -> Result<(u32, String, Counts)> {
        let args = Some(Slice { buffer: BufferId(args_at), offset: 0, bytes: launch.args.len() });
        let slices = std::iter::once((args, Access::Read))
            .chain(launch.bindings.iter().copied().zip(launch.kernel.buffers.iter().map(|b| b.access)));
        let mut views = vec![0usize; self.buffers.len()];
        let mut bindings = Vec::new();
        for (slice, access) in slices {
            let Some(slice) = slice else {
                let base = std::ptr::null_mut();
                bindings.push(ffi::Binding { base, offset: 0, bytes: 0, buffer: 0, writes: 0 });
                continue;
            };
            let at = slice.buffer.0;
            bindings.push(ffi::Binding {
                base: self.buffers[at].memory.view(views[at])?,
                offset: slice.offset as u64,
                bytes: slice.bytes as u64,
                buffer: at as u32,
                writes: u32::from(access == Access::Write),
            });
            views[at] += 1;
        }
        let mut buffers: Vec<ffi::Buffer> = self
            .buffers
            .iter_mut()
            .map(|b| ffi::Buffer {
                cells: b.cells.as_mut_ptr(),
                written: b.written.as_mut_ptr(),
                bytes: b.written.len() as u64,
                granule: b.granule as u32,
                ordered: b.ordered,
            })
            .collect();
        let array_bytes: Vec<u32> = launch.kernel.scratch.iter().map(Scratch::bytes).collect();
        let sizes = launch.kernel.scratch.iter().map(|s| s.dtype.block_bytes());
        let array_granule = sizes.min().unwrap_or(1) as u32;
        let mut run = Run {
            entry,
            bindings: &bindings,
            buffers: &mut buffers,
            seed: launch.seed,
            groups: launch.geometry.groups,
            threads: launch.geometry.threads,
            array_bytes: &array_bytes,
            array_granule,
            serial: self.serial,
            hooked: library.mode == Mode::Hooked,
        };
        match library.object.run(&mut run) {
            Some(result) => Ok(result),
            None => rlx_ir::bail!(Bug, "the library has no runtime"),
        }
    }

    /// Whether bindings, arguments and geometry fit the kernel.
    fn check(&self, launch: &Launch<'_>) -> Result<(), String> {
        let (kernel, geometry) = (launch.kernel, launch.geometry);
        if geometry.threads == 0 || geometry.threads > MAX_THREADS || geometry.threads % SIMD_WIDTH != 0 {
            return Err(format!(
                "{} threads: expected a multiple of 32 up to {MAX_THREADS}",
                geometry.threads
            ));
        }
        let groups = geometry.groups.iter().try_fold(1u32, |n, g| n.checked_mul(*g));
        if groups.is_none_or(|n| n == 0) {
            return Err(format!("{:?} threadgroups", geometry.groups));
        }
        if kernel.scratch.len() > MAX_ARRAYS {
            return Err(format!("{} arrays of threadgroup memory", kernel.scratch.len()));
        }
        if launch.args.len() != kernel.args.bytes {
            return Err(format!("{} bytes of arguments, expected {}", launch.args.len(), kernel.args.bytes));
        }
        if launch.bindings.len() != kernel.buffers.len() {
            return Err(format!("{} bindings, expected {}", launch.bindings.len(), kernel.buffers.len()));
        }
        for (slice, buffer) in launch.bindings.iter().zip(&kernel.buffers) {
            let Some(slice) = slice else {
                if buffer.optional {
                    continue;
                }
                return Err(format!("{} is not bound", buffer.name));
            };
            self.range(*slice).map_err(|e| format!("{}: {e}", buffer.name))?;
            let elem = buffer.dtype.block_bytes();
            if slice.offset % elem != 0 {
                return Err(format!("{}: offset {} is no multiple of {elem}", buffer.name, slice.offset));
            }
        }
        Ok(())
    }
}
