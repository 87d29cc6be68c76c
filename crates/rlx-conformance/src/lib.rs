//! Cases that every backend must pass, and the filetest runner.

pub mod equivalence;
mod error;
pub mod filetest;
pub mod random_graph;

pub use error::{Error, Result};
