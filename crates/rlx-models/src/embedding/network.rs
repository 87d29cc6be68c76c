//! The network of an embedding model, with the layers that follow it.

use std::path::Path;

use rlx_runtime::WeightSource;
use rlx_runtime::weights::{SafetensorsFile, SafetensorsWeights};

use crate::encoder::Encoder;
use crate::files::{ModelConfig, ModelFiles};
use crate::sentence_transformers::{DenseSource, EmbeddingConfig};
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
        let parts: &[&str] = if layer.bias { &["weight", "bias"] } else { &["weight"] };
        for part in parts {
            let data = match &layer.source {
                DenseSource::Folder(folder) => {
                    let file = SafetensorsFile::open(&folder.join("model.safetensors"))?;
                    SafetensorsWeights::new(vec![file]).weight(&format!("linear.{part}"))?
                }
                DenseSource::Gguf(name) => encoder.weights().require(&format!("{name}.{part}"))?,
            };
            encoder.weights_mut().insert(format!("dense.{i}.{part}"), data);
        }
    }
    Ok((encoder, config))
}
