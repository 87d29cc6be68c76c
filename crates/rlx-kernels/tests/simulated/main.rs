//! Every kernel against the reference interpreter, in the simulator with all checks on.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod activation;
mod elementwise;
mod embedding;
mod harness;
mod norm;
mod pooling;
mod position;
mod reduce;
mod shape;
