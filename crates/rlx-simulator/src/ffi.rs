//! The border to the C++ runtime and to the system: shared objects, views of memory, `sim_run`.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;

use crate::error::{Error, Result};

/// What a dispatch did. Accesses are counted in the hooked mode only, those to a thread's own stack never.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accesses that read.
    pub reads: u64,
    /// Accesses that write.
    pub writes: u64,
    /// Barriers that threadgroups passed.
    pub barriers: u64,
    /// Simdgroup functions and barriers that simdgroups passed.
    pub simd_ops: u64,
}

/// Who last wrote and read some bytes: `Cell` in `runtime/sim.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell([u32; 10]);

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) cells: *mut Cell,
    pub(crate) written: *mut u8,
    pub(crate) bytes: u64,
    pub(crate) granule: u32,
    pub(crate) ordered: u32,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) base: *mut u8,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) buffer: u32,
    pub(crate) writes: u32,
}

/// An entry point of a kernel.
pub(crate) type Entry = *const c_void;

#[repr(C)]
#[derive(Debug)]
struct Dispatch {
    entry: Entry,
    bindings: *const Binding,
    buffers: *mut Buffer,
    message: *mut c_char,
    message_bytes: u64,
    seed: u64,
    binding_count: u32,
    groups: [u32; 3],
    threads: u32,
    array_count: u32,
    array_bytes: [u32; MAX_ARRAYS],
    array_granule: u32,
    serial: u32,
    hooked: u32,
}

/// The most arrays of threadgroup memory.
pub(crate) const MAX_ARRAYS: usize = 8;

/// A dispatch whose parts have been checked.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    pub(crate) entry: Entry,
    pub(crate) bindings: &'a [Binding],
    pub(crate) buffers: &'a mut [Buffer],
    pub(crate) seed: u64,
    pub(crate) groups: [u32; 3],
    pub(crate) threads: u32,
    pub(crate) array_bytes: &'a [u32],
    /// The size of the smallest element of threadgroup memory.
    pub(crate) array_granule: u32,
    pub(crate) serial: u32,
    pub(crate) hooked: bool,
}

type SimRun = unsafe extern "C" fn(*const Dispatch, *mut Counts) -> u32;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlclose(handle: *mut c_void) -> c_int;
    fn dlerror() -> *const c_char;
    fn memfd_create(name: *const c_char, flags: u32) -> c_int;
    fn ftruncate(fd: c_int, bytes: c_long) -> c_int;
    fn mmap(
        at: *mut c_void,
        bytes: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn munmap(at: *mut c_void, bytes: usize) -> c_int;
}

const RTLD_NOW: c_int = 2;
const PROT_READ_WRITE: c_int = 3;
const PROT_NONE: c_int = 0;
const MAP_SHARED: c_int = 1;
const MAP_PRIVATE: c_int = 2;
const MAP_FIXED: c_int = 0x10;
const MAP_ANONYMOUS: c_int = 0x20;
const PAGE: usize = 4096;

/// A loaded library of kernels with the runtime in it.
#[derive(Debug)]
pub(crate) struct SharedObject(*mut c_void);

// SAFETY: the handle is only looked up in; the runtime keeps what it changes in thread-local variables.
unsafe impl Send for SharedObject {}
// SAFETY: as above.
unsafe impl Sync for SharedObject {}

impl SharedObject {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let Ok(name) = CString::new(path.as_os_str().as_encoded_bytes()) else {
            rlx_ir::bail!(InvalidArgument, "{}: a zero byte in a path", path.display());
        };
        // SAFETY: `name` ends with a zero byte and outlives the call; the object has no initialisers that do anything.
        let handle = unsafe { dlopen(name.as_ptr(), RTLD_NOW) };
        if handle.is_null() {
            // SAFETY: after a failure `dlerror` gives a string that lives until the next call on this thread.
            let why = unsafe { CStr::from_ptr(dlerror()) }.to_string_lossy().into_owned();
            rlx_ir::bail!(Io, "{why}");
        }
        Ok(Self(handle))
    }

    /// The address of a symbol.
    pub(crate) fn symbol(&self, name: &str) -> Option<Entry> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open and `name` ends with a zero byte.
        let address = unsafe { dlsym(self.0, name.as_ptr()) };
        (!address.is_null()).then_some(address.cast_const())
    }

    /// Runs a dispatch: the fault's number and message, and what was counted.
    pub(crate) fn run(&self, run: &mut Run<'_>) -> Option<(u32, String, Counts)> {
        let function = self.symbol("sim_run")?;
        let mut message = [0u8; 512];
        let mut array_bytes = [0; MAX_ARRAYS];
        array_bytes.get_mut(..run.array_bytes.len())?.copy_from_slice(run.array_bytes);
        let dispatch = Dispatch {
            entry: run.entry,
            bindings: run.bindings.as_ptr(),
            buffers: run.buffers.as_mut_ptr(),
            message: message.as_mut_ptr().cast(),
            message_bytes: message.len() as u64,
            seed: run.seed,
            binding_count: u32::try_from(run.bindings.len()).ok()?,
            groups: run.groups,
            threads: run.threads,
            array_count: u32::try_from(run.array_bytes.len()).ok()?,
            array_bytes,
            array_granule: run.array_granule,
            serial: run.serial,
            hooked: run.hooked.into(),
        };
        let mut counts = Counts::default();
        // SAFETY: `sim_run` has this type in runtime/fibers.cpp. All pointers are to slices that outlive the call; views
        // are mapped for as long as their memory lives, which the caller holds; the structs have the same layout
        // there. What the kernel itself touches is what is tested here: hooks end it before an access outside of its
        // bindings happens.
        let code = unsafe {
            let function: SimRun = std::mem::transmute(function);
            function(&dispatch, &mut counts)
        };
        let end = message.iter().position(|b| *b == 0).unwrap_or(message.len());
        Some((code, String::from_utf8_lossy(&message[..end]).into_owned(), counts))
    }
}

impl Drop for SharedObject {
    fn drop(&mut self) {
        // SAFETY: the handle came from `dlopen` and is closed once; nobody keeps an address beyond the library.
        unsafe { dlclose(self.0) };
    }
}

/// Memory that is mapped several times, so that each binding has addresses of its own for the same bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    file: OwnedFd,
    bytes: usize,
    views: Vec<*mut u8>,
}

// SAFETY: the views are of memory that belongs to this value alone, and are reached through it.
unsafe impl Send for Memory {}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        // SAFETY: the name is a string with a zero byte at its end.
        let fd = unsafe { memfd_create(c"rlx-simulator".as_ptr(), 0) };
        if fd < 0 {
            rlx_ir::bail!(Io, "memfd_create: {}", std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor is fresh and belongs to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let size = bytes.max(1);
        // SAFETY: the descriptor is open.
        let grown = c_long::try_from(size).is_ok_and(|n| unsafe { ftruncate(file.as_raw_fd(), n) } == 0);
        if !grown {
            rlx_ir::bail!(Io, "cannot make a buffer of {bytes} bytes");
        }
        let mut memory = Self { file, bytes, views: Vec::new() };
        memory.view(0)?;
        Ok(memory)
    }

    /// The bytes of addresses that a view takes: whole pages, with one before and one behind that nobody else has.
    fn room(&self) -> usize {
        self.bytes.max(1).next_multiple_of(PAGE) + 2 * PAGE
    }

    /// The address of the first byte in view `index`.
    pub(crate) fn view(&mut self, index: usize) -> Result<*mut u8> {
        while self.views.len() <= index {
            let room = self.room();
            // SAFETY: fresh addresses that the system chooses, with no access.
            let reserved =
                unsafe { mmap(ptr::null_mut(), room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
            if reserved as isize == -1 {
                rlx_ir::bail!(Io, "cannot reserve {room} bytes: {}", std::io::Error::last_os_error());
            }
            let at = reserved.wrapping_byte_add(PAGE);
            let flags = MAP_SHARED | MAP_FIXED;
            // SAFETY: the addresses lie inside of what was just reserved, which nobody else knows; the file is as long.
            let mapped =
                unsafe { mmap(at, self.bytes.max(1), PROT_READ_WRITE, flags, self.file.as_raw_fd(), 0) };
            if mapped as isize == -1 {
                rlx_ir::bail!(Io, "cannot map {} bytes: {}", self.bytes, std::io::Error::last_os_error());
            }
            self.views.push(at.cast());
        }
        Ok(self.views[index])
    }

    /// The address of the first byte for the host.
    pub(crate) fn host(&self) -> *mut u8 {
        self.views[0]
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the first view maps this many bytes for as long as `self` lives, and no dispatch runs while `self` is
        // borrowed.
        unsafe { std::slice::from_raw_parts(self.views[0], self.bytes) }
    }

    /// All bytes, mutable.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and other views are used by dispatches only.
        unsafe { std::slice::from_raw_parts_mut(self.views[0], self.bytes) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        for &view in &self.views {
            // SAFETY: each view was reserved with this size, from a page before on, and is given back once.
            unsafe { munmap(view.wrapping_byte_sub(PAGE).cast(), self.room()) };
        }
    }
}
