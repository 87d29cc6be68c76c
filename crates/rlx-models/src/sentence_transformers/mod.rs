//! What sentence-transformers knows about a model beside its network: pooling, layers after it, limits, prompts.
//!
//! [`EmbeddingConfig`] is read from a model's folder or from GGUF metadata. Every fact keeps its source, so that
//! `inspect` can show it; what cannot be run exactly is refused by name.

mod config;
mod dense;
mod folder;
mod gguf;
mod pooling;

pub use config::{EmbeddingConfig, Sources};
pub use dense::{Activation, DenseConfig, DenseSource};
pub use gguf::{
    DEFAULT_PROMPT_KEY, DENSE_BIAS_KEY, DENSE_IN_KEY, DENSE_KEY, DENSE_OUT_KEY, DIMS_KEY, LOWERCASE_KEY,
    MAX_SEQ_LENGTH_KEY, NORMALIZE_KEY, POOL_PROMPT_KEY, POOLING_KEY, PROMPTS_KEY,
};
pub use pooling::PoolingMode;
