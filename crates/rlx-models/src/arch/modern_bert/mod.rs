//! ModernBERT (Warner et al. 2024): an encoder with norms before each block, gated feed-forward blocks, and rotary positions;
//! in most layers a token sees only those near it, on both sides.

mod config;
mod gguf;
mod graph;
mod hf;
mod names;

pub use config::ModernBertConfig;
pub use names::NAMES;
