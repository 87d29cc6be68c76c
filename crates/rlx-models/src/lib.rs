//! Architectures, tokenizers, pooling and sampling.

pub mod arch;
mod cancel;
pub mod convert;
pub mod embedding;
pub mod encoder;
mod error;
pub mod files;
pub mod forward;
pub mod hub;
pub mod json;
pub mod language;
pub mod options;
pub mod sampling;
pub mod sentence_transformers;
pub mod text;

pub use cancel::CancelToken;
pub use embedding::{EmbeddingModel, EmbeddingOptions, Embeddings};
pub use error::{Error, Result};
pub use language::{LanguageModel, LanguageOptions};
