//! The CPU backend.
//!
//! [`CpuBackend`] is the backend; [`kernels`] holds the operations as plain functions over slices; [`pool`] the threads that they share; [`simd`] the
//! vector instructions, chosen at run time. Results have the same bits for every batch size and thread count.

mod backend;
mod error;
pub mod kernels;
pub mod pool;
pub mod simd;
#[cfg(test)]
mod testing;
mod thunks;

pub use backend::{CpuBackend, CpuKernel, KernelCall};
pub use error::{Error, Result};
