//! What every decoder's graph has in common: one step over new tokens of some sequences, with keys and values in pages.
//!
//! Inputs: `ids: i32[N]`, `positions: i32[N]`, `slots: i32[N]` (where each token's key and value go), `starts: i32[R + 1]`,
//! `lengths: i32[R]` (with the new tokens), `table: i32[R, T]` (pages of each sequence), `rows: i32[L]` (the tokens whose
//! logits are wanted). States: `k.{i}` and `v.{i}` of each layer, `[P, page_len, num_kv_heads, head_dim]`. Output: logits
//! `f32[L, vocab_size]`. The same graph serves prefill and decode.

use rlx_ir::{Builder, DType, Dim, Graph, Value};

use super::llama::{Llama, LlamaConfig};
use super::weight_type::WeightType;
use crate::files::{ModelConfig, ModelFiles, NamedWeights};
use crate::{Error, Result};

/// The largest sizes that one step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderLimits {
    /// New tokens of one step, all sequences together.
    pub tokens: usize,
    /// Sequences of one step.
    pub sequences: usize,
    /// Tokens of one step whose logits are wanted.
    pub rows: usize,
    /// Tokens of one sequence, those in the cache included.
    pub context: usize,
    /// Tokens of a page.
    pub page_len: usize,
    /// The type of keys and values in the cache: a float type.
    pub kv_dtype: DType,
    /// The type of the matrices.
    pub weights: WeightType,
}

impl DecoderLimits {
    /// Pages of one sequence.
    pub fn pages(&self) -> usize {
        self.context.div_ceil(self.page_len.max(1))
    }
}

/// The sizes of a decoder that its users need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecoderShape {
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Layers.
    pub num_layers: usize,
    /// Heads of keys and values.
    pub num_kv_heads: usize,
    /// The length of a head's vector.
    pub head_dim: usize,
    /// The most tokens that the model takes.
    pub context_length: usize,
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
    /// `NotFound` and `InvalidFile` naming the tensor that is missing or has a shape that the config does not give.
    fn graph(&self, limits: &DecoderLimits) -> Result<Graph>;
}

/// The decoder in `files`.
///
/// # Errors
/// `UnsupportedModel` where the architecture is not known or is no decoder; errors of its config.
pub fn open(files: &ModelFiles) -> Result<Box<dyn Decoder>> {
    let architecture = files.supported()?;
    let place = |e: Error| e.context(files.path().display());
    match architecture.name {
        "llama" | "mistral" => {
            let config = match files.config() {
                ModelConfig::Hf(config) => LlamaConfig::from_hf(config)?,
                ModelConfig::Gguf(gguf) => LlamaConfig::from_gguf(gguf).map_err(place)?,
            };
            Ok(Box::new(Llama::new(config, files).map_err(place)?))
        }
        name => rlx_ir::bail!(
            UnsupportedModel,
            "{}: the architecture \"{name}\" is no language model: it has no next token",
            files.path().display()
        ),
    }
}

/// The inputs of a decoder's graph.
#[derive(Clone, Debug)]
pub struct DecoderInputs {
    /// Tokens.
    pub ids: Value,
    /// Positions within their sequences.
    pub positions: Value,
    /// Where keys and values go.
    pub slots: Value,
    /// First token of each sequence.
    pub starts: Value,
    /// Tokens of each sequence, with the new ones.
    pub lengths: Value,
    /// Pages of each sequence.
    pub table: Value,
    /// Tokens whose logits are wanted.
    pub rows: Value,
    /// The number of new tokens.
    pub n: Dim,
    /// The number of pages.
    pub pages: Dim,
}

impl DecoderInputs {
    /// Declares the inputs.
    ///
    /// # Errors
    /// `InvalidArgument` where a name is taken.
    pub fn declare(b: &mut Builder, limits: &DecoderLimits) -> Result<Self> {
        let n = b.symbol("N", limits.tokens);
        let r = b.symbol("R", limits.sequences);
        let t = b.symbol("T", limits.pages());
        let l = b.symbol("L", limits.rows);
        // Slots are i32.
        let pages = b.symbol("P", i32::MAX as usize / limits.page_len.max(1));
        Ok(Self {
            ids: b.input("ids", DType::I32, [n.clone()])?,
            positions: b.input("positions", DType::I32, [n.clone()])?,
            slots: b.input("slots", DType::I32, [n.clone()])?,
            starts: b.input("starts", DType::I32, [r.clone() + 1.into()])?,
            lengths: b.input("lengths", DType::I32, [r.clone()])?,
            table: b.input("table", DType::I32, [r, t])?,
            rows: b.input("rows", DType::I32, [l])?,
            n,
            pages,
        })
    }
}
