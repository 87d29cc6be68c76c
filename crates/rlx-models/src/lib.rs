//! Architectures, tokenizers, pooling and sampling.

mod error;
pub mod json;
pub mod sampling;
pub mod sentence_transformers;
pub mod text;

pub use error::{Error, Result};
