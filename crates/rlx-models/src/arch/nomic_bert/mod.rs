//! NomicBERT (Nussbaum et al. 2024): an encoder with rotary positions, gated feed-forward blocks, and norms after each
//! residual.
//!
//! Two layouts of the config: that of the models on the hub, with the words of GPT-2 (`n_embd`), and that of transformers.

mod config;
mod gguf;
mod graph;
mod hf;
mod names;

pub use config::NomicBertConfig;
pub use names::NAMES;
