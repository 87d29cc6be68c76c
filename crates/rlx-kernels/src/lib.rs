//! GPU kernels of RLX: sources in one dialect, their manifest, argument structs and launch geometry.
//!
//! A kernel's maths is a C++ template in `kernels/<family>/<op>.metal`. The [`manifest`] says for which dtypes it is
//! instantiated, which buffers it reads and writes, and what it needs of a threadgroup; [`source`] makes of that one text
//! for each [`Target`](source::Target), with the entry points that the target wants. [`region`] writes kernels for fused
//! elementwise ops. [`args`] holds the argument structs, defined once and printed as C++; [`geometry`] says how
//! many threadgroups to launch; [`call`](mod@call) makes of an op and the layouts of its operands the kernel, its arguments and its
//! bindings, for every backend. Nothing here needs an SDK: what runs kernels lives in the backends and in the simulator.

pub mod args;
pub mod call;
mod error;
pub mod geometry;
pub mod layout;
pub mod manifest;
pub mod region;
pub mod source;

pub use error::{Error, Result};
pub use manifest::{Access, Kernel};
