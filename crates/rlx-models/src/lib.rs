//! Architectures, tokenizers, pooling and sampling.

pub mod arch;
mod error;
pub mod files;
pub mod json;
pub mod language;
pub mod sampling;
pub mod sentence_transformers;
pub mod text;

pub use error::{Error, Result};
