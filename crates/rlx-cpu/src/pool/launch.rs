//! The unsafe core of the pool: a borrowed closure is lent to other threads, and disjoint parts of one slice are
//! handed to tasks.

use std::any::Any;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};

use rlx_ir::bail;

use crate::error::{Error, Result};

/// Rounds of the spin loop before a worker parks: some 20 microseconds.
const SPINS: u32 = 1000;

/// The most threads of a pool.
pub const MAX_THREADS: usize = 1024;

/// Bit of the state that says that workers may join; the bits below count the workers that are in, the bits above
/// count runs.
const OPEN: u64 = 1 << 16;
const RUN: u64 = 1 << 17;
const INSIDE: u64 = OPEN - 1;

type Task<'a> = dyn Fn(usize) + Sync + 'a;

struct Shared {
    state: AtomicU64,
    /// The closure of the run that is open.
    task: UnsafeCell<Option<&'static Task<'static>>>,
    tasks: AtomicUsize,
    next: AtomicUsize,
    panic: Mutex<Option<String>>,
    stop: AtomicBool,
}

// SAFETY: `task` is written only by the holder of `Pool::busy` while the state is closed with no worker inside, and
// read only by workers that entered through the open state (acquire) of that same run.
unsafe impl Sync for Shared {}
// SAFETY: a shared reference to a `Sync` closure may move between threads.
unsafe impl Send for Shared {}

struct Worker {
    thread: Thread,
    parked: Arc<AtomicBool>,
}

/// A pool of persistent threads; see the [module](super).
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    handles: Vec<JoinHandle<()>>,
    busy: Mutex<()>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} threads)", self.threads())
    }
}

impl Pool {
    /// A pool of `threads` threads, the caller counted; by default as many as the process may use (on Linux, the
    /// quota of its control group counts).
    ///
    /// Errors: `InvalidArgument` for more than [`MAX_THREADS`]; `Io` where the system refuses a thread.
    pub fn new(threads: Option<NonZeroUsize>) -> Result<Self> {
        if let Some(asked) = threads.filter(|n| n.get() > MAX_THREADS) {
            rlx_ir::bail!(
                InvalidArgument,
                "{asked} CPU threads were asked for; at most {MAX_THREADS} can be"
            );
        }
        let threads = threads.or_else(|| std::thread::available_parallelism().ok());
        let workers = threads.map_or(0, |n| n.get().min(MAX_THREADS) - 1);
        let shared = Arc::new(Shared {
            state: AtomicU64::new(0),
            task: UnsafeCell::new(None),
            tasks: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
        });
        let mut pool = Self { shared, workers: Vec::new(), handles: Vec::new(), busy: Mutex::new(()) };
        for i in 1..=workers {
            let (shared, parked) = (pool.shared.clone(), Arc::new(AtomicBool::new(false)));
            let mine = parked.clone();
            let handle = std::thread::Builder::new()
                .name(format!("rlx-cpu-{i}"))
                .spawn(move || shared.work(&mine))
                .map_err(|e| Error::new(rlx_ir::ErrorKind::Io, format!("cannot start thread {i}: {e}")))?;
            pool.workers.push(Worker { thread: handle.thread().clone(), parked });
            pool.handles.push(handle);
        }
        Ok(pool)
    }

    /// The threads that take part in a run, the caller counted.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `task` once with each number below `tasks`, spread over the threads, and waits for all.
    ///
    /// Errors: `Bug` where a task panics, with its message; tasks that were not yet begun are then left out.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) -> Result<()> {
        if tasks > 1
            && !self.workers.is_empty()
            && let Ok(_busy) = self.busy.try_lock()
        {
            return self.run_shared(tasks, &task);
        }
        match catch_unwind(AssertUnwindSafe(|| (0..tasks).for_each(&task))) {
            Ok(()) => Ok(()),
            Err(payload) => Err(panicked(&message(&*payload))),
        }
    }

    fn run_shared(&self, tasks: usize, task: &Task<'_>) -> Result<()> {
        let shared = &*self.shared;
        // SAFETY: only the lifetime changes. The reference is used by this thread and by workers inside this run;
        // below, the run is closed and left by all of them before this function returns, and no panic escapes.
        let lent = unsafe { std::mem::transmute::<&Task<'_>, &'static Task<'static>>(task) };
        // SAFETY: `busy` is held, the state is closed and no worker is inside.
        unsafe { *shared.task.get() = Some(lent) };
        shared.tasks.store(tasks, Relaxed);
        shared.next.store(0, Relaxed);
        let run = (shared.state.load(Relaxed) & !(RUN - 1)).wrapping_add(RUN);
        shared.state.store(run | OPEN, SeqCst);
        for worker in self.workers.iter().take(tasks - 1) {
            if worker.parked.swap(false, SeqCst) {
                worker.thread.unpark();
            }
        }
        shared.take_tasks(task);
        shared.state.fetch_and(!OPEN, AcqRel);
        let mut rounds = 0u32;
        while shared.state.load(Acquire) & INSIDE != 0 {
            rounds += 1;
            if rounds < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        // SAFETY: as above: closed, and nobody inside.
        unsafe { *shared.task.get() = None };
        match shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take() {
            None => Ok(()),
            Some(message) => Err(panicked(&message)),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, SeqCst);
        self.shared.state.fetch_add(RUN, SeqCst);
        for worker in &self.workers {
            worker.parked.store(false, SeqCst);
            worker.thread.unpark();
        }
        for handle in self.handles.drain(..) {
            // A worker catches the panics of its tasks; there is nothing to report here.
            let _ = handle.join();
        }
    }
}

impl Shared {
    /// The life of a worker.
    fn work(&self, parked: &AtomicBool) {
        let mut seen = 0;
        loop {
            let state = self.wait_for_run(seen, parked);
            if self.stop.load(SeqCst) {
                return;
            }
            seen = state & !(RUN - 1);
            if self.enter(seen) {
                // SAFETY: this worker entered the run while it was open, so the closure is set and stays lent until
                // the worker leaves.
                let task = unsafe { *self.task.get() };
                if let Some(task) = task {
                    self.take_tasks(task);
                }
                self.state.fetch_sub(1, Release);
            }
        }
    }

    /// The state, once it belongs to another run than `seen`.
    fn wait_for_run(&self, seen: u64, parked: &AtomicBool) -> u64 {
        let mut spins = 0;
        loop {
            let state = self.state.load(SeqCst);
            if state & !(RUN - 1) != seen {
                return state;
            }
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
                continue;
            }
            parked.store(true, SeqCst);
            // Looked at again after `parked` is visible: a run that opens later sees it and wakes this thread.
            if self.state.load(SeqCst) & !(RUN - 1) == seen {
                while parked.load(SeqCst) {
                    std::thread::park();
                }
            }
            parked.store(false, SeqCst);
            spins = 0;
        }
    }

    /// Joins the run, if it is still open.
    fn enter(&self, run: u64) -> bool {
        let mut state = self.state.load(Acquire);
        while state & !(RUN - 1) == run && state & OPEN != 0 {
            match self.state.compare_exchange_weak(state, state + 1, AcqRel, Acquire) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    fn take_tasks(&self, task: &Task<'_>) {
        let tasks = self.tasks.load(Relaxed);
        loop {
            let i = self.next.fetch_add(1, Relaxed);
            if i >= tasks {
                return;
            }
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| task(i))) {
                let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert_with(|| message(&*payload));
                self.next.store(tasks, Relaxed);
            }
        }
    }
}

fn panicked(message: &str) -> Error {
    Error::new(rlx_ir::ErrorKind::Bug, format!("a CPU kernel panicked: {message}"))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}

/// A rectangle of a row-major matrix that belongs to one task.
pub struct TileMut<'a, T> {
    start: *mut T,
    stride: usize,
    row: usize,
    col: usize,
    rows: usize,
    cols: usize,
    matrix: PhantomData<&'a mut [T]>,
}

impl<T> TileMut<'_, T> {
    /// The first row of the matrix that this covers.
    pub fn row(&self) -> usize {
        self.row
    }

    /// The first column of the matrix that this covers.
    pub fn col(&self) -> usize {
        self.col
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `r` of the tile, counted from its first.
    pub fn row_mut(&mut self, r: usize) -> &mut [T] {
        assert!(r < self.rows, "row {r} of a tile of {} rows", self.rows);
        // SAFETY: `tiles` checked that the matrix holds all its rows and made tiles that do not overlap; `start` is
        // the tile's first element and `r` is below its rows. The borrow of `self` keeps rows from aliasing.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(r * self.stride), self.cols) }
    }
}

/// A pointer that tasks may share: each uses a part of its own.
struct Shareable<T>(*mut T);

// SAFETY: the parts that tasks make of the pointer do not overlap, and `T: Send` lets them be written elsewhere.
unsafe impl<T: Send> Sync for Shareable<T> {}

impl<T> Shareable<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// Cuts the `[rows, cols]` matrix in `out` (rows `stride` elements apart) into tiles of at most `tile` = `[rows, cols]`
/// and runs `task` on each.
///
/// Tiles are numbered along a row first. Errors: `InvalidArgument` where `out` is too short or `stride < cols`; those
/// of [`Pool::run`].
pub fn tiles<T: Send>(
    pool: &Pool,
    out: &mut [T],
    [rows, cols]: [usize; 2],
    stride: usize,
    tile: [usize; 2],
    task: impl Fn(TileMut<'_, T>) + Sync,
) -> Result<()> {
    if rows == 0 || cols == 0 {
        return Ok(());
    }
    let needed = (rows - 1).checked_mul(stride).and_then(|n| n.checked_add(cols));
    if stride < cols || needed.is_none_or(|n| n > out.len()) {
        bail!(
            InvalidArgument,
            "a result of [{rows}, {cols}] with stride {stride} does not fit {} elements",
            out.len()
        );
    }
    let tile = [tile[0].clamp(1, rows), tile[1].clamp(1, cols)];
    let across = cols.div_ceil(tile[1]);
    let base = Shareable(out.as_mut_ptr());
    pool.run(rows.div_ceil(tile[0]) * across, |i| {
        let (row, col) = (i / across * tile[0], i % across * tile[1]);
        // SAFETY: row < rows and col < cols, so the offset is inside the checked length.
        let start = unsafe { base.get().add(row * stride + col) };
        let (rows, cols) = (tile[0].min(rows - row), tile[1].min(cols - col));
        task(TileMut { start, stride, row, col, rows, cols, matrix: PhantomData });
    })
}

/// Runs `task` on each run of `len` elements of `out` (the last may be shorter), with its number.
///
/// Errors: those of [`Pool::run`].
pub fn chunks<T: Send>(
    pool: &Pool,
    out: &mut [T],
    len: usize,
    task: impl Fn(usize, &mut [T]) + Sync,
) -> Result<()> {
    chunks_pair(pool, (out, len), (&mut [], 0), |i, out, _: &mut [()]| task(i, out))
}

/// [`chunks`] of two slices side by side: chunk i of both goes to one task. A length of 0 gives each task an empty
/// chunk.
///
/// Errors: `InvalidArgument` where the slices do not have equally many chunks; those of [`Pool::run`].
pub fn chunks_pair<A: Send, B: Send>(
    pool: &Pool,
    (a, a_len): (&mut [A], usize),
    (b, b_len): (&mut [B], usize),
    task: impl Fn(usize, &mut [A], &mut [B]) + Sync,
) -> Result<()> {
    let count = |len: usize, chunk: usize| if chunk == 0 { None } else { Some(len.div_ceil(chunk)) };
    let counts = (count(a.len(), a_len), count(b.len(), b_len));
    let (Some(tasks), true) =
        (counts.0.or(counts.1), counts.0.is_none() || counts.1.is_none() || counts.0 == counts.1)
    else {
        bail!(
            InvalidArgument,
            "{} elements by {a_len} and {} elements by {b_len} are not cut alike",
            a.len(),
            b.len()
        );
    };
    let (a_total, b_total) = (a.len(), b.len());
    let (a, b) = (Shareable(a.as_mut_ptr()), Shareable(b.as_mut_ptr()));
    let part =
        |i: usize, len: usize, total: usize| ((i * len).min(total), len.min(total - (i * len).min(total)));
    pool.run(tasks, |i| {
        let ((a_at, a_len), (b_at, b_len)) = (part(i, a_len, a_total), part(i, b_len, b_total));
        // SAFETY: the ranges lie inside the slices, and those of different tasks do not overlap.
        let a = unsafe { std::slice::from_raw_parts_mut(a.get().add(a_at), a_len) };
        // SAFETY: as above.
        let b = unsafe { std::slice::from_raw_parts_mut(b.get().add(b_at), b_len) };
        task(i, a, b);
    })
}
