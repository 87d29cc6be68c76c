//! The graph language of RLX: dtypes, block formats, symbolic shapes, ops, text form, verifier and reference
//! interpreter. Everything here is pure: no files, no environment, no threads, no clock in what is computed.

mod dtype;
mod error;
pub mod quant;

pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
