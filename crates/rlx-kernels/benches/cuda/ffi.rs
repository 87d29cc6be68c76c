//! What has no safe interface: whether CUDA's libraries are there, machine code from NVRTC, and launches.

use std::ffi::{CStr, CString};

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg, sys as driver};
use cudarc::nvrtc::result::{self as nvrtc, NvrtcError};
use cudarc::nvrtc::sys as nvrtc_sys;
use rlx_kernels::geometry::Geometry;

/// Whether the driver's library can be loaded. Without it, whatever else of `cudarc` is called panics.
pub fn driver_is_here() -> bool {
    // SAFETY: loads NVIDIA's library, whose initialisers may run in any thread, and lets go of it.
    unsafe { driver::is_culib_present() }
}

/// Whether NVRTC's library can be loaded.
pub fn nvrtc_is_here() -> bool {
    // SAFETY: as for the driver.
    unsafe { nvrtc_sys::is_culib_present() }
}

/// NVRTC's version: major, minor.
pub fn nvrtc_version() -> (i32, i32) {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are written before the call returns.
    let _ = unsafe { nvrtc_sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    (major, minor)
}

struct Program(nvrtc_sys::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made by `create_program`, and destroyed only here.
        let _ = unsafe { nvrtc::destroy_program(self.0) };
    }
}

/// Compiles a text to machine code, or says what the compiler says.
pub fn compile(text: &str, options: &[String]) -> Result<Vec<u8>, String> {
    let failed = |e: NvrtcError| format!("NVRTC: {e}");
    let text = CString::new(text).map_err(|e| e.to_string())?;
    let program = Program(nvrtc::create_program(&text, Some(c"kernels.cu")).map_err(failed)?);
    // SAFETY: the program lives, as does the text; options hold no zero byte.
    if let Err(e) = unsafe { nvrtc::compile_program(program.0, options) } {
        // SAFETY: the program lives.
        let log = unsafe { nvrtc::get_program_log(program.0) }.map_err(failed)?;
        let log: Vec<u8> = log.iter().map(|c| c.cast_unsigned()).collect();
        let log = CStr::from_bytes_until_nul(&log).map(|l| l.to_string_lossy().into_owned());
        return Err(format!("NVRTC: {e}\n{}", log.unwrap_or_default()));
    }
    let mut bytes = 0;
    // SAFETY: the program lives and was compiled for an architecture's machine code.
    unsafe { nvrtc_sys::nvrtcGetCUBINSize(program.0, &raw mut bytes) }.result().map_err(failed)?;
    let mut code = vec![0u8; bytes];
    // SAFETY: `code` has the size that was asked for.
    unsafe { nvrtc_sys::nvrtcGetCUBIN(program.0, code.as_mut_ptr().cast()) }.result().map_err(failed)?;
    Ok(code)
}

/// Launches an entry point of the manifest's form on pointers to its arguments and buffers, 0 for those that are missing.
pub fn launch(
    stream: &CudaStream,
    function: &CudaFunction,
    geometry: Geometry,
    pointers: &[CUdeviceptr],
) -> Result<(), DriverError> {
    let [x, y, z] = geometry.groups;
    let config =
        LaunchConfig { grid_dim: (x, y, z), block_dim: (geometry.threads, 1, 1), shared_mem_bytes: 0 };
    let mut builder = stream.launch_builder(function);
    for pointer in pointers {
        builder.arg(pointer);
    }
    // SAFETY: an entry point takes one pointer for the arguments and one for each buffer, which the caller holds until
    // the stream is done; that the kernel stays within them is what is tested.
    unsafe { builder.launch(config) }.map(|_| ())
}
