//! Simulated hardware: kernels run on the CPU, every access is checked, and what was asked for is recorded.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rlx_ir::{Tick, bail};
use rlx_kernels::geometry::{DeviceLimits, Geometry};
use rlx_kernels::source::Target;
use rlx_kernels::{Access, Kernel};
use rlx_runtime::weights::WeightBytes;
use rlx_simulator::{BufferId, Compiler, Launch, Library, Mode, Simulator, Slice};

use super::{Command, CommandList, DeviceFacts, Dispatch, Driver, Memory, Pipeline, Range, Run};
use crate::error::{Error, Result};

/// The pages of files.
const PAGE_BYTES: usize = 4096;

/// Simulated hardware.
pub struct SimulatorDriver {
    gpu: Arc<Mutex<Simulator>>,
    compiler: Compiler,
    mode: Mode,
    facts: DeviceFacts,
    recording: Arc<Mutex<Recording>>,
    /// The order of threads in the next dispatch.
    seed: Mutex<u64>,
    deaf: AtomicBool,
    /// Whether weights are copied rather than used where their file is mapped.
    copies: AtomicBool,
    /// How many command buffers are carried out before one fails.
    good: Mutex<Option<usize>>,
    /// The most threads of a threadgroup, of kernels that are made ready from now on.
    threads: AtomicU32,
}

/// What a driver was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// One list for each command buffer.
    pub command_buffers: Vec<Vec<Recorded>>,
    /// How often the host waited for the device.
    pub waits: usize,
    /// Bytes of buffers that were made.
    pub allocated_bytes: u64,
    /// Bytes of weights that are used where their file is mapped.
    pub file_bytes: u64,
    /// The names of kernels that were made ready, in order.
    pub pipelines: Vec<String>,
}

impl Recording {
    /// All dispatches of all command buffers.
    pub fn dispatches(&self) -> impl Iterator<Item = &RecordedDispatch> {
        self.command_buffers.iter().flatten().filter_map(|command| match command {
            Recorded::Dispatch(dispatch) => Some(dispatch),
            Recorded::Barrier { .. } => None,
        })
    }

    /// The number of barriers.
    pub fn barriers(&self) -> usize {
        self.command_buffers.iter().flatten().filter(|c| matches!(c, Recorded::Barrier { .. })).count()
    }
}

/// A command as it was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// A barrier over this many buffers.
    Barrier {
        /// The number of buffers.
        buffers: usize,
    },
    /// A launch.
    Dispatch(RecordedDispatch),
}

/// A launch as it was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedDispatch {
    /// The kernel's name.
    pub kernel: String,
    /// The labels of the groups around it, outermost first.
    pub groups: Vec<Arc<str>>,
    /// Threadgroups and threads.
    pub geometry: Geometry,
    /// Bytes that are bound for reading, arguments not among them.
    pub read_bytes: u64,
    /// Bytes that are bound for writing.
    pub written_bytes: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic elsewhere leaves nothing half done here.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn device(e: impl fmt::Display) -> Error {
    Error::new(rlx_ir::ErrorKind::Device, e.to_string())
}

impl SimulatorDriver {
    /// Hardware that keeps compiled kernels in `folder`.
    ///
    /// # Errors
    /// `NotFound` where the compiler is not there.
    pub fn new(folder: &Path, mode: Mode) -> Result<Self> {
        let compiler = Compiler::find(folder).map_err(|e| Error::new(e.kind(), e.message()))?;
        let facts = DeviceFacts {
            name: "simulated Apple GPU".to_owned(),
            memory_bytes: 0,
            limits: DeviceLimits::APPLE,
            features: vec![if mode == Mode::Hooked { "checked" } else { "fast" }.to_owned()],
        };
        Ok(Self {
            gpu: Arc::default(),
            compiler,
            mode,
            facts,
            recording: Arc::default(),
            seed: Mutex::new(1),
            deaf: AtomicBool::new(false),
            copies: AtomicBool::new(false),
            good: Mutex::default(),
            threads: AtomicU32::new(DeviceLimits::APPLE.threads),
        })
    }

    /// What was asked for since the last call.
    pub fn take_recording(&self) -> Recording {
        std::mem::take(&mut lock(&self.recording))
    }

    /// The order in which threads take turns in the next dispatch; each dispatch counts on from it, at first from 1. 0 is the
    /// natural order for all.
    pub fn set_seed(&self, seed: u64) {
        *lock(&self.seed) = seed;
    }

    /// Leaves barriers out from now on, or no longer: what then goes wrong must be found.
    pub fn ignore_barriers(&self, ignore: bool) {
        self.deaf.store(ignore, Ordering::Relaxed);
    }

    /// Copies weights from now on, as for a device that does not take a file's pages; or no longer.
    pub fn copy_weights(&self, copy: bool) {
        self.copies.store(copy, Ordering::Relaxed);
    }

    /// After `count` more command buffers one fails and does nothing, as on a device that is reset.
    pub fn fail_after(&self, count: usize) {
        *lock(&self.good) = Some(count);
    }

    /// Kernels that are made ready from now on take at most this many threads, as those do that need many registers.
    pub fn limit_threads(&self, threads: u32) {
        self.threads.store(threads, Ordering::Relaxed);
    }

    /// Whether the next command buffer is the one that fails.
    fn fails(&self) -> bool {
        let mut good = lock(&self.good);
        let fails = *good == Some(0);
        *good = good.and_then(|count| count.checked_sub(1));
        fails
    }

    fn new_buffer(&self, bytes: usize, element: usize) -> Result<SimulatorBuffer> {
        let mut gpu = lock(&self.gpu);
        let id = gpu.buffer(bytes, element).map_err(device)?;
        let address = gpu.host_address(id).expose_provenance();
        Ok(SimulatorBuffer { id, address, bytes, gpu: self.gpu.clone() })
    }

    fn next_seed(&self) -> u64 {
        let mut seed = lock(&self.seed);
        let own = *seed;
        *seed += u64::from(own > 0);
        own
    }

    fn dispatch(&self, gpu: &mut Simulator, dispatch: &Dispatch<Self>) -> Result<()> {
        for range in &dispatch.begins {
            gpu.forget(range.slice()).map_err(device)?;
        }
        let args = gpu.read(dispatch.args.slice()).map_err(device)?;
        let bindings: Vec<Option<Slice>> =
            dispatch.bindings.iter().map(|b| b.as_ref().map(Range::slice)).collect();
        let seed = self.next_seed();
        let launch = Launch {
            kernel: &dispatch.kernel,
            geometry: dispatch.geometry,
            args: &args,
            bindings: &bindings,
            seed,
        };
        gpu.dispatch(&dispatch.pipeline.library, &launch)
            .map_err(|fault| device(fault).context(format!("threads in the order of seed {seed}")))?;
        Ok(())
    }
}

impl Range<SimulatorDriver> {
    fn slice(&self) -> Slice {
        Slice { buffer: self.buffer.id, offset: self.offset, bytes: self.bytes }
    }
}

fn recorded(dispatch: &Dispatch<SimulatorDriver>, groups: &[Arc<str>]) -> RecordedDispatch {
    let bytes = |access| {
        let bound = dispatch.bindings.iter().zip(&dispatch.kernel.buffers);
        bound
            .filter(|(_, b)| b.access == access)
            .filter_map(|(range, _)| range.as_ref())
            .map(|r| r.bytes as u64)
            .sum()
    };
    RecordedDispatch {
        kernel: dispatch.kernel.name.clone(),
        groups: groups.to_vec(),
        geometry: dispatch.geometry,
        read_bytes: bytes(Access::Read),
        written_bytes: bytes(Access::Write),
    }
}

impl Driver for SimulatorDriver {
    type Buffer = SimulatorBuffer;
    type Library = Arc<Library>;
    type Pipeline = SimulatorPipeline;
    type Run = SimulatorRun;

    const TARGET: Target = Target::Host;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn buffer(&self, bytes: usize, element: usize) -> Result<SimulatorBuffer> {
        let bytes = bytes.max(1);
        let buffer = self.new_buffer(bytes, element)?;
        lock(&self.recording).allocated_bytes += bytes as u64;
        Ok(buffer)
    }

    /// What stands in for the pages of a file: a buffer of as many bytes, in which `bytes` lie at the place that they have
    /// there. What surrounds them counts as written by nobody, so that strays are found.
    fn buffer_over(&self, bytes: &WeightBytes) -> Result<Option<(SimulatorBuffer, usize)>> {
        match bytes {
            WeightBytes::Mapped(mapping, _) if mapping.is_file() && !bytes.is_empty() => {}
            _ => return Ok(None),
        }
        if self.copies.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let offset = bytes.as_ptr().addr() % PAGE_BYTES;
        // Nothing writes there, so that neighbours need not be told apart.
        let buffer = self.new_buffer((offset + bytes.len()).next_multiple_of(PAGE_BYTES), 8)?;
        lock(&self.gpu).write(buffer.id, offset, bytes).map_err(device)?;
        lock(&self.recording).file_bytes += bytes.len() as u64;
        Ok(Some((buffer, offset)))
    }

    fn library(&self, text: &str) -> Result<Arc<Library>> {
        Ok(Arc::new(self.compiler.library(text, self.mode).map_err(device)?))
    }

    fn pipeline(&self, library: &Arc<Library>, kernel: &Kernel) -> Result<SimulatorPipeline> {
        lock(&self.recording).pipelines.push(kernel.name.clone());
        Ok(SimulatorPipeline { library: library.clone(), threads: self.threads.load(Ordering::Relaxed) })
    }

    fn commit(&self, list: &CommandList<Self>) -> Result<SimulatorRun> {
        let tick = Tick::now();
        let mut gpu = lock(&self.gpu);
        let mut done = Vec::new();
        let mut failure = self.fails().then(|| "the device was reset".to_owned());
        // Command buffers of one queue run one after the other.
        gpu.barrier();
        let mut groups: Vec<Arc<str>> = Vec::new();
        for command in list.commands.iter().filter(|_| failure.is_none()) {
            match command {
                Command::PushGroup(label) => groups.push(label.clone()),
                Command::PopGroup => {
                    if groups.pop().is_none() {
                        bail!(Bug, "a group ends that was not begun");
                    }
                }
                Command::Barrier(buffers) => {
                    let ids: HashSet<BufferId> = buffers.iter().map(|b| b.id).collect();
                    if !self.deaf.load(Ordering::Relaxed) {
                        ids.iter().for_each(|id| gpu.barrier_for(*id));
                    }
                    done.push(Recorded::Barrier { buffers: ids.len() });
                }
                Command::Dispatch(dispatch) => {
                    done.push(Recorded::Dispatch(recorded(dispatch, &groups)));
                    if let Err(e) = self.dispatch(&mut gpu, dispatch) {
                        failure = Some(e.message().to_owned());
                        break;
                    }
                }
            }
        }
        drop(gpu);
        lock(&self.recording).command_buffers.push(done);
        Ok(SimulatorRun { failure, ns: tick.elapsed_ns(), recording: self.recording.clone() })
    }

    fn host_wrote(&self, range: &Range<Self>) {
        // A range that does not fit is found when it is bound.
        let _ = lock(&self.gpu).host_wrote(range.slice());
    }
}

/// A buffer of simulated hardware.
#[derive(Debug)]
pub struct SimulatorBuffer {
    id: BufferId,
    /// For the host, as a number, which may go to other threads.
    address: usize,
    bytes: usize,
    gpu: Arc<Mutex<Simulator>>,
}

impl Memory for SimulatorBuffer {
    fn address(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for SimulatorBuffer {
    fn drop(&mut self) {
        // Without memory for an empty buffer, the place is lost and nothing else.
        let _ = lock(&self.gpu).free(self.id);
    }
}

/// A kernel within its library.
#[derive(Debug)]
pub struct SimulatorPipeline {
    library: Arc<Library>,
    threads: u32,
}

impl Pipeline for SimulatorPipeline {
    fn max_threads(&self) -> u32 {
        self.threads
    }
}

/// A command buffer that was carried out.
#[derive(Debug)]
pub struct SimulatorRun {
    failure: Option<String>,
    ns: u64,
    /// Where waits are counted.
    recording: Arc<Mutex<Recording>>,
}

impl Run for SimulatorRun {
    fn wait(self) -> Result<u64> {
        lock(&self.recording).waits += 1;
        match self.failure {
            Some(why) => bail!(Device, "{why}"),
            None => Ok(self.ns),
        }
    }
}
