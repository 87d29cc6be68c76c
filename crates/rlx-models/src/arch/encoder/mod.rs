//! What encoders have in common: the inputs of their graphs, the parts of their layers, and what follows them for embeddings.

mod decoder;
mod graph;
mod layer;
mod network;
mod pooling;
mod positions;

pub(crate) use decoder::DecoderNetwork;
pub(super) use graph::EncoderInputs;
pub use graph::{EmbeddingHead, EncoderGraph, EncoderOutput};
pub(super) use layer::{AttentionSpec, Heads, Layer, Rotary, embed_tokens};
pub use network::{EncoderNetwork, EncoderShape};
pub use positions::Positions;
