//! Results on stdout.

pub mod embeddings;
mod generation;
mod stdout;
mod table;
mod units;

pub use generation::Report;
pub use stdout::Stdout;
pub use table::{Align, Table};
pub use units::{bytes, count, preview};
