//! Decoder-only networks: one code for the graph, and a table of facts for each architecture.
//!
//! [`open`] gives a [`Decoder`], which has two graphs over the same layers:
//! - [`Decoder::graph`], one step over new tokens of some sequences, with keys and values in pages. Inputs: `ids: i32[N]`,
//!   `positions: i32[N]`, `slots: i32[N]` (where each token's key and value go), `starts: i32[R + 1]`, `lengths: i32[R]` (with the
//!   new tokens), `table: i32[R, T]` (pages of each sequence), `rows: i32[L]` (the tokens whose logits are wanted). States: `k.{i}`
//!   and `v.{i}` of each layer, `[P, page_len, num_kv_heads, head_dim]`. Output: logits `f32[L, vocab_size]`. The same graph serves
//!   prefill and decode.
//! - [`Decoder::hidden`], which emits the network without head and state into a graph of the caller's: for embeddings.
//!
//! A new architecture is a folder beside this one with a [`DecoderArchitecture`], listed in [`ARCHITECTURES`]. What its config
//! may say goes through `hf.rs` and `gguf.rs`, which refuse what is not built; a tensor of the network that the graph does not read
//! is refused too.

mod architecture;
mod config;
mod gguf;
mod gguf_write;
mod hf;
mod inputs;
mod layers;
mod limits;
pub mod names;
mod network;
mod ropes;

use rlx_ir::{Builder, Graph, Value, bail};

pub use architecture::{DecoderArchitecture, GgufFacts, HfBias, HfDefaults, HfFacts};
pub use config::{AttentionConfig, Biases, DecoderConfig, Direction, Experts, FeedForward, LayerConfig};
pub(super) use gguf_write::GgufWriter;
pub(crate) use gguf_write::write as write_gguf;
pub(crate) use hf::config_from_hf;
pub(super) use hf::{rope_of_all_layers, sliding_layers};
pub use inputs::Tokens;
pub use limits::DecoderLimits;
pub use network::Network;
pub(crate) use ropes::ROPE_FACTORS;

use super::weight_type::WeightType;
use super::{gemma3, llama, mistral, qwen2, qwen3, qwen3_moe};
use crate::files::{ModelFiles, NamedWeights};
use crate::{Error, Result};

/// All architectures of decoders.
pub static ARCHITECTURES: [&DecoderArchitecture; 7] = [
    &llama::ARCHITECTURE,
    &mistral::ARCHITECTURE,
    &qwen2::ARCHITECTURE,
    &qwen3::ARCHITECTURE,
    &qwen3_moe::ARCHITECTURE,
    &gemma3::ARCHITECTURE,
    &gemma3::EMBEDDING,
];

/// The sizes of a decoder that its users need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderShape {
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// The length of a token's vector.
    pub hidden_size: usize,
    /// Layers.
    pub num_layers: usize,
    /// Heads of keys and values.
    pub num_kv_heads: usize,
    /// The length of a head's vector.
    pub head_dim: usize,
    /// The most tokens that the model takes.
    pub context_length: usize,
    /// What the model was trained for.
    pub direction: Direction,
    /// Where tokens see both ways, how far in layers that have a window, on either side.
    pub window: Option<usize>,
}

/// A decoder-only network with its weights.
pub trait Decoder: Send + Sync {
    /// Its sizes.
    fn shape(&self) -> DecoderShape;

    /// The tensors by canonical names.
    fn weights(&self) -> &NamedWeights;

    /// The graph of one step.
    ///
    /// # Errors
    /// `NotFound` and `InvalidFile` naming the tensor that is missing or has a shape that the config does not give;
    /// `UnsupportedModel` where a layer has a tensor that the network does not read, and where tokens see those after them.
    fn graph(&self, limits: &DecoderLimits) -> Result<Graph>;

    /// Emits the network over whole sequences, without state: the vectors after the last norm, `f32[N, hidden_size]`.
    /// `direction` is usually that of [`shape`](Self::shape). The weights are declared under canonical names, so that
    /// [`weights`](Self::weights) serves them.
    ///
    /// # Errors
    /// As [`graph`](Self::graph).
    fn hidden(
        &self,
        b: &mut Builder,
        tokens: &Tokens,
        weights: WeightType,
        direction: Direction,
    ) -> Result<Value>;
}

/// The architecture of the model in `files`.
///
/// # Errors
/// `UnsupportedModel` where it is not known or is no decoder.
pub fn architecture(files: &ModelFiles) -> Result<&'static DecoderArchitecture> {
    let name = files.supported()?.name;
    match ARCHITECTURES.iter().find(|a| a.name == name) {
        Some(found) => Ok(found),
        None => bail!(
            UnsupportedModel,
            "{}: the architecture \"{name}\" is no language model: it has no next token",
            files.path().display()
        ),
    }
}

/// The decoder in `files`.
///
/// # Errors
/// `UnsupportedModel` where the architecture is not known or is no decoder; errors of its config.
pub fn open(files: &ModelFiles) -> Result<Box<dyn Decoder>> {
    let place = files.path().display().to_string();
    let network = Network::open(architecture(files)?, files);
    // What a config.json says wrong comes with its own path.
    Ok(Box::new(network.map_err(|e| if e.message().starts_with(&place) { e } else { e.context(place) })?))
}
