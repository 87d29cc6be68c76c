//! The network of an encoder, whatever its architecture.

use rlx_ir::{Graph, bail};

use crate::arch::{EncoderGraph, Family, bert};
use crate::files::{ModelFiles, NamedWeights};
use crate::{Error, Result};

/// An encoder's config and weights.
#[derive(Clone, Debug)]
pub struct Encoder {
    config: bert::BertConfig,
    weights: NamedWeights,
}

impl Encoder {
    /// The encoder in `files`.
    ///
    /// # Errors
    /// `UnsupportedModel` for another kind of model; errors of its config.
    pub fn new(files: &ModelFiles) -> Result<Self> {
        let architecture = files.supported()?;
        if architecture.family != Family::Encoder {
            bail!(
                UnsupportedModel,
                "{}: {} models give no vectors for texts; encoders do",
                files.path().display(),
                architecture.name
            );
        }
        let weights = NamedWeights::new(files, &bert::NAMES);
        let config = bert::BertConfig::from_files(files, &weights)?;
        Ok(Self { config, weights })
    }

    /// Its graph.
    ///
    /// # Errors
    /// `NotFound` or `InvalidFile` naming a tensor that is missing or does not fit.
    pub fn graph(&self, graph: &EncoderGraph) -> Result<Graph> {
        bert::build(&self.config, &self.weights, graph)
    }

    /// Its tensors by canonical name.
    pub fn weights(&self) -> &NamedWeights {
        &self.weights
    }

    /// Its tensors by canonical name, to add those of layers after the network.
    pub fn weights_mut(&mut self) -> &mut NamedWeights {
        &mut self.weights
    }

    /// Tokens of its vocabulary.
    pub fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    /// The most tokens of a sequence.
    pub fn max_positions(&self) -> usize {
        self.config.max_positions
    }

    /// Components of a token's vector.
    pub fn hidden_size(&self) -> usize {
        self.config.hidden_size
    }
}
