//! The metadata of an encoder from its Hugging Face files.

use std::path::Path;

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;

use super::vocabulary;
use crate::arch::weight_type::WeightType;
use crate::arch::{EncoderGraph, EncoderOutput};
use crate::encoder::Encoder;
use crate::files::ModelFiles;
use crate::sentence_transformers::{
    DEFAULT_PROMPT_KEY, EmbeddingConfig, MAX_SEQ_LENGTH_KEY, NORMALIZE_KEY, PROMPTS_KEY, PoolingMode,
};
use crate::{Error, Result};

/// An encoder whose metadata was written.
pub(super) struct Converted {
    pub(super) encoder: Encoder,
    /// What the result lacks, for people.
    pub(super) note: Option<String>,
}

/// Adds sizes, pooling and vocabulary of the encoder in `folder`.
pub(super) fn metadata(m: &mut MetadataBuilder, files: &ModelFiles, folder: &Path) -> Result<Converted> {
    // A model that cannot be run is refused before anything is written.
    let whole = EncoderGraph {
        max_tokens: 1,
        max_sequences: 1,
        weights: WeightType::AsStored,
        output: EncoderOutput::Hidden,
    };
    let encoder = Encoder::new(files)?;
    encoder.graph(&whole)?;
    let network = encoder.network();
    m.set("general.architecture", network.gguf_name());
    network.write_metadata(m);
    embedding(m, network.gguf_name(), folder)?;
    let note = vocabulary::write(m, folder, encoder.vocab_size())?;
    Ok(Converted { encoder, note })
}

/// What sentence-transformers knows.
fn embedding(m: &mut MetadataBuilder, architecture: &str, folder: &Path) -> Result<()> {
    let config = EmbeddingConfig::from_folder(folder)?;
    let pooling = match config.pooling.as_slice() {
        [PoolingMode::Mean] => 1u32,
        [PoolingMode::Cls] => 2,
        [PoolingMode::LastToken] => 3,
        modes => {
            let names: Vec<&str> = modes.iter().map(|m| m.name()).collect();
            bail!(
                UnsupportedModel,
                "{}: GGUF cannot say that vectors are pooled by {}",
                folder.display(),
                names.join(" and ")
            )
        }
    };
    for (is, what) in [
        (!config.dense.is_empty(), "that there are layers after pooling"),
        (!config.pool_prompt, "that prompts are left out of pooling"),
    ] {
        if is {
            bail!(UnsupportedModel, "{}: GGUF cannot say {what}", folder.display());
        }
    }
    m.set(&format!("{architecture}.pooling_type"), pooling);
    m.set(NORMALIZE_KEY, config.normalize);
    if let Some(n) = config.max_seq_length {
        m.set(MAX_SEQ_LENGTH_KEY, u32::try_from(n).unwrap_or(u32::MAX));
    }
    if !config.prompts.is_empty() {
        let prompts = serde_json::to_string(&config.prompts);
        match prompts {
            Ok(prompts) => m.set(PROMPTS_KEY, prompts.as_str()),
            Err(e) => bail!(Bug, "prompts: {e}"),
        }
    }
    if let Some(name) = &config.default_prompt {
        m.set(DEFAULT_PROMPT_KEY, name.as_str());
    }
    Ok(())
}
