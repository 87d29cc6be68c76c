//! Cases that every backend must pass, and the filetest runner.
//!
//! - [`cases`]: for each op a generator of samples;
//! - [`suite`]: runs them on backends and after each stage of the compiler, against the interpreter;
//! - [`equivalence`]: whether two graphs compute the same;
//! - [`random_graph`]: pseudo-random graphs for testing passes; [`random_network`]: of what encoders are made of, for backends;
//! - [`filetest`]: text IR with a command and expectations.

pub mod cases;
pub mod equivalence;
mod error;
pub mod filetest;
pub mod random_graph;
pub mod random_network;
pub mod suite;

pub use error::{Error, Result};
