//! What each encoder architecture gives.

use std::fmt::Debug;

use rlx_gguf::MetadataBuilder;
use rlx_ir::Graph;

use super::{EncoderGraph, Positions};
use crate::Result;
use crate::files::NamedWeights;

/// The sizes of an encoder that its users need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderShape {
    /// Tokens of the vocabulary.
    pub vocab_size: usize,
    /// Components of a token's vector.
    pub hidden_size: usize,
    /// The most tokens of a sequence.
    pub max_positions: usize,
    /// Where tokens stand.
    pub positions: Positions,
    /// The distance at which tokens see each other in every layer but some; `None` where all see all.
    pub window: Option<usize>,
}

/// The config of an encoder, whatever its architecture.
pub trait EncoderNetwork: Debug + Send + Sync {
    /// Its sizes.
    fn shape(&self) -> EncoderShape;

    /// Its graph, with the tensors `weights`.
    ///
    /// # Errors
    /// `NotFound` or `InvalidFile` naming a tensor that is missing or of another shape than the config says;
    /// `InvalidArgument` for a head that does not fit.
    fn build(&self, weights: &NamedWeights, graph: &EncoderGraph) -> Result<Graph>;

    /// The name that GGUF has for the architecture.
    fn gguf_name(&self) -> &'static str;

    /// Adds the sizes as GGUF metadata.
    fn write_metadata(&self, metadata: &mut MetadataBuilder);

    /// A tensor that GGUF files have without its first rows, and how many these are.
    fn rows_before_gguf(&self) -> Option<(&'static str, usize)> {
        None
    }
}
