//! What a GGUF file says about its vectors, and the rule for what it does not say.

use rlx_gguf::Metadata;
use rlx_ir::bail;

use super::{EmbeddingConfig, PoolingMode, Sources};
use crate::{Error, Result};

/// The longest text in tokens.
pub const MAX_SEQ_LENGTH_KEY: &str = "rlx.embedding.max_seq_length";
/// Whether vectors are normalised.
pub const NORMALIZE_KEY: &str = "rlx.embedding.normalize";
/// The prompts, as a JSON object from name to text.
pub const PROMPTS_KEY: &str = "rlx.embedding.prompts";
/// The name of the prompt that is used where none is asked for.
pub const DEFAULT_PROMPT_KEY: &str = "rlx.embedding.default_prompt";

impl EmbeddingConfig {
    /// What the metadata of a GGUF file says, `architecture` being its `general.architecture`.
    ///
    /// GGUF has no keys for what sentence-transformers knows; RLX writes its own (`rlx.embedding.*`). For a file
    /// without them the rule is: the limit is the context length, vectors are normalised, pooling is `pooling_type`,
    /// or the mean where that is missing.
    ///
    /// # Errors
    /// `InvalidFile` for a key of another type or prompts that are no JSON; `UnsupportedModel` for a pooling type that
    /// gives no vectors, or is not known.
    pub fn from_metadata(metadata: &Metadata, architecture: &str) -> Result<Self> {
        let mut sources = Sources::default();
        let pooling_key = format!("{architecture}.pooling_type");
        let pooling = match metadata.u32(&pooling_key)? {
            Some(id) => {
                sources.pooling.clone_from(&pooling_key);
                let mode = PoolingMode::from_gguf(id).map_err(|e| e.context(&pooling_key))?;
                match mode {
                    Some(mode) => vec![mode],
                    None => bail!(
                        UnsupportedModel,
                        "{pooling_key}: 0 (none): the model gives a vector per token only"
                    ),
                }
            }
            None => {
                sources.pooling = format!("mean, because {pooling_key} is missing");
                vec![PoolingMode::Mean]
            }
        };
        let context_key = format!("{architecture}.context_length");
        let max_seq_length = match metadata.usize(MAX_SEQ_LENGTH_KEY)? {
            Some(n) => {
                sources.max_seq_length = MAX_SEQ_LENGTH_KEY.into();
                Some(n)
            }
            None => {
                sources.max_seq_length.clone_from(&context_key);
                metadata.usize(&context_key)?
            }
        };
        if max_seq_length == Some(0) {
            bail!(InvalidFile, "{}: 0 tokens", sources.max_seq_length);
        }
        let normalize = match metadata.bool(NORMALIZE_KEY)? {
            Some(normalize) => {
                sources.normalize = NORMALIZE_KEY.into();
                normalize
            }
            None => {
                sources.normalize = format!("normalised, because {NORMALIZE_KEY} is missing");
                true
            }
        };
        let mut prompts = std::collections::BTreeMap::new();
        if let Some(text) = metadata.str(PROMPTS_KEY)? {
            sources.prompts = PROMPTS_KEY.into();
            prompts = match serde_json::from_str(text) {
                Ok(prompts) => prompts,
                Err(e) => bail!(InvalidFile, "{PROMPTS_KEY}: {e}"),
            };
        }
        let default_prompt = metadata.str(DEFAULT_PROMPT_KEY)?.map(str::to_owned);
        if let Some(name) = &default_prompt
            && !prompts.contains_key(name)
        {
            bail!(InvalidFile, "{DEFAULT_PROMPT_KEY}: \"{name}\" is none of the prompts");
        }
        Ok(Self {
            pooling,
            pool_prompt: true,
            dense: Vec::new(),
            normalize,
            max_seq_length,
            lowercase: false,
            prompts,
            default_prompt,
            sources,
        })
    }
}
