//! Runs RLX's GPU kernels on the CPU, and checks every access: a test tool, stricter than any hardware.
//!
//! [`Compiler`] builds kernels with clang for the host, [`Simulator`] holds buffers and runs dispatches. The threads of a
//! threadgroup are fibers that take turns in a seeded order, barriers are real, simdgroups have 32 lanes, denormals
//! are zero. In [`Mode::Hooked`] every access is seen, and a dispatch ends with a [`Fault`] at the first
//! - access outside of the ranges that are bound, or a write to what is bound for reading;
//! - access that is not aligned to its size;
//! - read of bytes that nobody wrote since the buffer's life began ([`Simulator::forget`]);
//! - race between lanes, simdgroups or threadgroups of a dispatch;
//! - touch of bytes that an earlier dispatch touches too, with no [`Simulator::barrier`] between and one of them writing;
//!
//! and in every mode at the first barrier or simdgroup function that not all threads reach. The runtime is C++ in
//! `runtime/`. It exists for Linux on x86-64; elsewhere this crate is empty.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod compiler;
mod error;
mod fault;
mod ffi;
mod simulator;
mod skip;
mod unseen;

pub use compiler::{Compiler, Library, Mode, Pass};
pub use error::{Error, Result};
pub use fault::{Fault, FaultKind};
pub use ffi::Counts;
pub use simulator::{BufferId, Launch, Simulator, Slice};
pub use skip::or_skip;
