//! The metadata of an encoder from its Hugging Face files, and the tensors that GGUF has otherwise.

use std::path::Path;

use rlx_gguf::MetadataBuilder;
use rlx_runtime::weights::WeightData;

use super::vocabulary;
use crate::Result;
use crate::arch::weight_type::WeightType;
use crate::arch::{EmbeddingHead, EncoderGraph, EncoderOutput};
use crate::embedding::open_network;
use crate::encoder::Encoder;
use crate::files::ModelFiles;
use crate::sentence_transformers::EmbeddingConfig;

/// What becomes of an encoder beside its metadata.
pub(super) struct Converted {
    /// Tensors that take the place of those of the same name, or are added.
    pub(super) tensors: Vec<(String, WeightData)>,
    /// What the result lacks, for people.
    pub(super) notes: Vec<String>,
}

/// Adds sizes, pooling and vocabulary of the encoder in `folder`.
pub(super) fn metadata(m: &mut MetadataBuilder, files: &ModelFiles, folder: &Path) -> Result<Converted> {
    let (encoder, config) = open_network(files)?;
    // A model that cannot be run is refused before anything is written.
    encoder.graph(&EncoderGraph {
        max_tokens: 1,
        max_sequences: 1,
        weights: WeightType::AsStored,
        output: EncoderOutput::Pooled(EmbeddingHead { config: config.clone(), dims: None }),
    })?;
    let network = encoder.network();
    m.set("general.architecture", network.gguf_name());
    network.write_metadata(m);
    let notes = vocabulary::write(m, folder, encoder.vocab_size())?;
    Ok(Converted { tensors: modules(m, &encoder, &config)?, notes })
}

/// Adds what sentence-transformers knows about a decoder.
pub(super) fn of_decoder(m: &mut MetadataBuilder, files: &ModelFiles) -> Result<Vec<(String, WeightData)>> {
    let (encoder, config) = open_network(files)?;
    modules(m, &encoder, &config)
}

/// Adds what follows the network; returns the tensors that GGUF has otherwise.
fn modules(
    m: &mut MetadataBuilder,
    encoder: &Encoder,
    config: &EmbeddingConfig,
) -> Result<Vec<(String, WeightData)>> {
    let mut out = Vec::new();
    let (network, weights) = (encoder.network(), encoder.weights());
    config.write_metadata(m, network.gguf_name())?;
    if let Some((name, rows)) = network.rows_before_gguf() {
        out.push((name.to_owned(), without_rows(weights.require(name)?, rows)));
    }
    for (i, layer) in config.dense.iter().enumerate() {
        let name = config.dense_tensor(i, network.gguf_name());
        let parts: &[&str] = if layer.bias { &["weight", "bias"] } else { &["weight"] };
        for part in parts {
            out.push((format!("{name}.{part}"), weights.require(&format!("dense.{i}.{part}"))?));
        }
    }
    Ok(out)
}

/// A tensor without its first rows.
fn without_rows(mut data: WeightData, rows: usize) -> WeightData {
    let all = data.ty.shape.first().copied().unwrap_or(0).max(1);
    let start = data.bytes.len() / all * rows.min(all);
    data.bytes = data.bytes.part(start..data.bytes.len());
    if let Some(first) = data.ty.shape.first_mut() {
        *first = first.saturating_sub(rows);
    }
    data
}
