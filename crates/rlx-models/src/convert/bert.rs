//! The metadata of a BERT model from its Hugging Face files.

use std::path::Path;

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;
use rlx_ir::ops::activation::Activation;

use super::{card, wordpiece};
use crate::arch::bert::{BertConfig, HIDDEN_ACT_KEY};
use crate::arch::weight_type::WeightType;
use crate::arch::{EncoderGraph, EncoderOutput};
use crate::encoder::Encoder;
use crate::files::{HfConfig, ModelFiles};
use crate::sentence_transformers::{
    DEFAULT_PROMPT_KEY, EmbeddingConfig, MAX_SEQ_LENGTH_KEY, NORMALIZE_KEY, PROMPTS_KEY, PoolingMode,
};
use crate::{Error, Result};

pub(super) fn metadata(files: &ModelFiles, config: &HfConfig) -> Result<MetadataBuilder> {
    // A model that cannot be run is refused before anything is written.
    let whole = EncoderGraph {
        max_tokens: 1,
        max_sequences: 1,
        weights: WeightType::AsStored,
        output: EncoderOutput::Hidden,
    };
    Encoder::new(files)?.graph(&whole)?;
    let sizes = BertConfig::from_hf(config)?;
    let folder = config.path().parent().unwrap_or(Path::new(""));
    let mut m = MetadataBuilder::new();
    m.set("general.architecture", "bert");
    m.set("general.type", "model");
    let name = folder.canonicalize().ok().and_then(|f| Some(f.file_name()?.to_string_lossy().into_owned()));
    if let Some(name) = &name {
        m.set("general.name", name.as_str());
    }
    if let Some(license) = card::license(folder) {
        m.set("general.license", license.as_str());
    }
    let mut size = |key: &str, n: usize| m.set(&format!("bert.{key}"), n as u32);
    size("block_count", sizes.num_layers);
    size("context_length", sizes.max_positions);
    size("embedding_length", sizes.hidden_size);
    size("feed_forward_length", sizes.intermediate_size);
    size("attention.head_count", sizes.num_heads);
    m.set("bert.attention.layer_norm_epsilon", sizes.layer_norm_eps as f32);
    m.set("bert.attention.causal", false);
    if sizes.activation != Activation::Gelu {
        m.set(HIDDEN_ACT_KEY, config.str("hidden_act")?.unwrap_or("gelu"));
    }
    embedding(&mut m, folder)?;
    m.set("tokenizer.ggml.token_type_count", sizes.type_vocab_size as u32);
    wordpiece::metadata(&mut m, folder, sizes.vocab_size)?;
    Ok(m)
}

/// What sentence-transformers knows.
fn embedding(m: &mut MetadataBuilder, folder: &Path) -> Result<()> {
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
    m.set("bert.pooling_type", pooling);
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
