//! A decoder as an encoder: its network without head and cache, whose token vectors are pooled for embeddings.

use std::fmt;

use rlx_gguf::MetadataBuilder;
use rlx_ir::{Builder, Graph};

use super::{EncoderGraph, EncoderInputs, EncoderNetwork, EncoderShape, Positions};
use crate::Result;
use crate::arch::decoder::{self, Decoder, DecoderArchitecture, Tokens};
use crate::files::{ModelFiles, NamedWeights};

/// The network of a decoder.
pub(crate) struct DecoderNetwork {
    architecture: &'static DecoderArchitecture,
    decoder: Box<dyn Decoder>,
}

impl DecoderNetwork {
    /// The network in `files`.
    ///
    /// # Errors
    /// `UnsupportedModel` for what is no decoder; errors of its config.
    pub(crate) fn open(files: &ModelFiles) -> Result<Self> {
        Ok(Self { architecture: decoder::architecture(files)?, decoder: decoder::open(files)? })
    }

    /// Its tensors by canonical name.
    pub(crate) fn weights(&self) -> &NamedWeights {
        self.decoder.weights()
    }
}

impl fmt::Debug for DecoderNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecoderNetwork").field("shape", &self.decoder.shape()).finish_non_exhaustive()
    }
}

impl EncoderNetwork for DecoderNetwork {
    fn shape(&self) -> EncoderShape {
        let shape = self.decoder.shape();
        EncoderShape {
            vocab_size: shape.vocab_size,
            hidden_size: shape.hidden_size,
            max_positions: shape.context_length,
            positions: Positions::Places,
            window: shape.window,
        }
    }

    fn build(&self, _weights: &NamedWeights, graph: &EncoderGraph) -> Result<Graph> {
        let mut b = Builder::new(self.architecture.name);
        let inputs = EncoderInputs::declare(&mut b, graph, 0)?;
        let tokens = Tokens {
            ids: inputs.ids,
            positions: inputs.positions,
            starts: inputs.starts,
            n: inputs.tokens.clone(),
        };
        let direction = self.decoder.shape().direction;
        let hidden = self.decoder.hidden(&mut b, &tokens, graph.weights, direction)?;
        inputs.finish(b, hidden, &graph.output)
    }

    fn gguf_name(&self) -> &'static str {
        self.architecture.gguf.architecture
    }

    /// Nothing: what a decoder's config says is written with its tensors' changes.
    fn write_metadata(&self, _metadata: &mut MetadataBuilder) {}
}
