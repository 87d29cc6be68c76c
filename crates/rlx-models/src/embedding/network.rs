//! The network of an embedding model, with the layers that follow it.

use std::path::Path;

use rlx_runtime::WeightSource;
use rlx_runtime::weights::{SafetensorsFile, SafetensorsWeights};

use crate::encoder::Encoder;
use crate::files::{ModelConfig, ModelFiles};
use crate::sentence_transformers::EmbeddingConfig;
use crate::{Error, Result};

/// The encoder in `files`, with the weights of the linear layers after it, and what the files say about pooling, layers,
/// limits and prompts. Needs no tokenizer.
///
/// # Errors
/// `UnsupportedModel` for another kind of model; errors of its config and of the layers' files.
pub fn open_network(files: &ModelFiles) -> Result<(Encoder, EmbeddingConfig)> {
    let mut encoder = Encoder::new(files)?;
    let config = match files.config() {
        ModelConfig::Hf(config) => {
            EmbeddingConfig::from_folder(config.path().parent().unwrap_or(Path::new("")))?
        }
        ModelConfig::Gguf(gguf) => EmbeddingConfig::from_metadata(gguf.metadata(), files.architecture())
            .map_err(|e: Error| e.context(files.path().display()))?,
    };
    for (i, layer) in config.dense.iter().enumerate() {
        let file = layer.folder.join("model.safetensors");
        let source = SafetensorsWeights::new(vec![SafetensorsFile::open(&file)?]);
        encoder.weights_mut().insert(format!("dense.{i}.weight"), source.weight("linear.weight")?);
        if layer.bias {
            encoder.weights_mut().insert(format!("dense.{i}.bias"), source.weight("linear.bias")?);
        }
    }
    Ok((encoder, config))
}
