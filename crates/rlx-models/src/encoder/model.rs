//! The network of an encoder, whatever its architecture.

use std::sync::Arc;

use rlx_ir::Graph;

use crate::Result;
use crate::arch::{
    DecoderNetwork, EMBEDDING_GEMMA, EncoderGraph, EncoderNetwork, EncoderShape, Family, bert, modern_bert,
    nomic_bert, refuse_unused,
};
use crate::files::{ModelConfig, ModelFiles, NamedWeights};

/// An encoder's config and weights.
#[derive(Clone, Debug)]
pub struct Encoder {
    network: Arc<dyn EncoderNetwork>,
    weights: NamedWeights,
}

impl Encoder {
    /// The encoder in `files`. A decoder is one too: the vectors of its tokens, before the head.
    ///
    /// # Errors
    /// Errors of its config.
    pub fn new(files: &ModelFiles) -> Result<Self> {
        let architecture = files.supported()?;
        if architecture.family == Family::Decoder || architecture.name == EMBEDDING_GEMMA {
            let network = DecoderNetwork::open(files)?;
            let weights = network.weights().clone();
            return Ok(Self { network: Arc::new(network), weights });
        }
        if let ModelConfig::Hf(config) = files.config() {
            config.refuse_quantised().map_err(|e| config.locate(e))?;
        }
        let weights = NamedWeights::new(files, architecture.names);
        let network: Arc<dyn EncoderNetwork> = match architecture.name {
            "nomic-bert" => Arc::new(nomic_bert::NomicBertConfig::from_files(files, &weights)?),
            "modern-bert" => Arc::new(modern_bert::ModernBertConfig::from_files(files, &weights)?),
            _ => Arc::new(bert::BertConfig::from_files(files, &weights)?),
        };
        Ok(Self { network, weights })
    }

    /// Its graph.
    ///
    /// # Errors
    /// `NotFound` or `InvalidFile` naming a tensor that is missing or does not fit; `UnsupportedModel` naming one of the
    /// network that the config does not use.
    pub fn graph(&self, graph: &EncoderGraph) -> Result<Graph> {
        let graph = self.network.build(&self.weights, graph)?;
        refuse_unused(&graph, &self.weights, self.network.gguf_name())?;
        Ok(graph)
    }

    /// Its config.
    pub fn network(&self) -> &dyn EncoderNetwork {
        &*self.network
    }

    /// Its tensors by canonical name.
    pub fn weights(&self) -> &NamedWeights {
        &self.weights
    }

    /// Its tensors by canonical name, to add those of layers after the network.
    pub fn weights_mut(&mut self) -> &mut NamedWeights {
        &mut self.weights
    }

    /// Its sizes.
    pub fn shape(&self) -> EncoderShape {
        self.network.shape()
    }

    /// Tokens of its vocabulary.
    pub fn vocab_size(&self) -> usize {
        self.shape().vocab_size
    }

    /// The most tokens of a sequence.
    pub fn max_positions(&self) -> usize {
        self.shape().max_positions
    }

    /// Components of a token's vector.
    pub fn hidden_size(&self) -> usize {
        self.shape().hidden_size
    }
}
