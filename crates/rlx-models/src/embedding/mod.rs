//! Texts to vectors.
//!
//! [`EmbeddingModel`] joins tokenizer, network and what follows it. A text's vector does not depend on the texts beside it:
//! sequences are packed without padding. What cannot be computed for one text is that text's error alone.

mod batch;
mod bundled;
mod embeddings;
mod model;
mod network;
mod options;

pub use crate::cancel::CancelToken;
pub use crate::encoder::EncoderMemory;
pub use bundled::{BUNDLED_MODEL, bundled, shipped};
pub use embeddings::{Embedded, Embeddings};
pub use model::EmbeddingModel;
pub use network::open_network;
pub use options::{EmbedRequest, EmbeddingOptions, Prompt, Truncation};
