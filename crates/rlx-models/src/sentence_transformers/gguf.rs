//! What a GGUF file says about its vectors, and the rule for what it does not say.
//!
//! GGUF has keys for one way to pool, and for the two layers after EmbeddingGemma; RLX has keys of its own for what else
//! sentence-transformers knows.

use std::collections::BTreeMap;

use rlx_gguf::{Metadata, MetadataBuilder};
use rlx_ir::bail;

use super::dense::{Activation, DenseConfig, DenseSource, MAX_FEATURES};
use super::{EmbeddingConfig, PoolingMode, Sources};
use crate::arch::{self, Family};
use crate::{Error, Result};

/// The longest text in tokens.
pub const MAX_SEQ_LENGTH_KEY: &str = "rlx.embedding.max_seq_length";
/// Whether vectors are normalised.
pub const NORMALIZE_KEY: &str = "rlx.embedding.normalize";
/// The prompts, as a JSON object from name to text.
pub const PROMPTS_KEY: &str = "rlx.embedding.prompts";
/// The name of the prompt that is used where none is asked for.
pub const DEFAULT_PROMPT_KEY: &str = "rlx.embedding.default_prompt";
/// The ways to pool whose vectors are concatenated, by name, where `pooling_type` cannot say it.
pub const POOLING_KEY: &str = "rlx.embedding.pooling";
/// How many components of a vector are kept, before normalisation; all where it is absent.
pub const DIMS_KEY: &str = "rlx.embedding.dims";
/// Whether the tokens of a prompt take part in pooling; true where it is absent.
pub const POOL_PROMPT_KEY: &str = "rlx.embedding.pool_prompt";
/// Whether the text is folded to lower case before the tokenizer; false where it is absent.
pub const LOWERCASE_KEY: &str = "rlx.embedding.lowercase";
/// The activation of each layer after pooling, by name; layer i has the tensors `dense.{i}.weight` and `dense.{i}.bias`.
pub const DENSE_KEY: &str = "rlx.embedding.dense.activation";
/// For each of these layers, the components of a vector that comes in.
pub const DENSE_IN_KEY: &str = "rlx.embedding.dense.in_features";
/// For each of these layers, the components of a vector that goes out.
pub const DENSE_OUT_KEY: &str = "rlx.embedding.dense.out_features";
/// For each of these layers, whether there is a bias.
pub const DENSE_BIAS_KEY: &str = "rlx.embedding.dense.bias";

/// More layers after pooling are refused.
const MAX_DENSE: usize = 64;
/// GGUF's own names for the layers after EmbeddingGemma.
const STANDARD_DENSE: [&str; 2] = ["dense_2", "dense_3"];
/// The architecture that has them.
const STANDARD_DENSE_OF: &str = "gemma-embedding";

impl EmbeddingConfig {
    /// What the metadata of a GGUF file says, `architecture` being its `general.architecture`.
    ///
    /// For a file without RLX's own keys (`rlx.embedding.*`) the rule is: the limit is the context length, vectors are
    /// normalised, pooling is `pooling_type`; where that is missing, encoders are pooled by the mean, and language models
    /// not at all.
    ///
    /// # Errors
    /// `InvalidFile` for a key of another type or prompts that are no JSON; `UnsupportedModel` for a pooling type that
    /// gives no vectors, or is not known.
    pub fn from_metadata(metadata: &Metadata, architecture: &str) -> Result<Self> {
        let mut sources = Sources::default();
        let pooling = pooling(metadata, architecture, &mut sources)?;
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
        let mut prompts = BTreeMap::new();
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
        if metadata.usize(DIMS_KEY)? == Some(0) {
            bail!(InvalidFile, "{DIMS_KEY}: 0 components");
        }
        let dense = dense(metadata, architecture)?;
        Ok(Self {
            pooling,
            pool_prompt: metadata.bool(POOL_PROMPT_KEY)?.unwrap_or(true),
            dense,
            dims: metadata.usize(DIMS_KEY)?,
            normalize,
            max_seq_length,
            lowercase: metadata.bool(LOWERCASE_KEY)?.unwrap_or(false),
            prompts,
            default_prompt,
            sources,
        })
    }

    /// Writes all of it as metadata of a model of this architecture. The weights of the layers after pooling are to be
    /// called as [`dense_tensor`](Self::dense_tensor) says.
    ///
    /// # Errors
    /// `Bug` where prompts cannot be written.
    pub fn write_metadata(&self, m: &mut MetadataBuilder, architecture: &str) -> Result<()> {
        let standard = match self.pooling.as_slice() {
            [mode] => mode.to_gguf(),
            _ => None,
        };
        // Readers that know the standard key alone are told that there is no such pooling.
        m.set(&format!("{architecture}.pooling_type"), standard.unwrap_or(0));
        if standard.is_none() {
            m.set_strs(POOLING_KEY, self.pooling.iter().map(|mode| mode.name()));
        }
        m.set(NORMALIZE_KEY, self.normalize);
        if let Some(n) = self.max_seq_length {
            m.set(MAX_SEQ_LENGTH_KEY, u32::try_from(n).unwrap_or(u32::MAX));
        }
        if let Some(n) = self.dims {
            m.set(DIMS_KEY, u32::try_from(n).unwrap_or(u32::MAX));
        }
        if !self.pool_prompt {
            m.set(POOL_PROMPT_KEY, false);
        }
        if self.lowercase {
            m.set(LOWERCASE_KEY, true);
        }
        if !self.prompts.is_empty() {
            match serde_json::to_string(&self.prompts) {
                Ok(prompts) => m.set(PROMPTS_KEY, prompts.as_str()),
                Err(e) => bail!(Bug, "prompts: {e}"),
            }
        }
        if let Some(name) = &self.default_prompt {
            m.set(DEFAULT_PROMPT_KEY, name.as_str());
        }
        if self.has_standard_dense(architecture) {
            for (name, layer) in STANDARD_DENSE.iter().zip(&self.dense) {
                m.set(&format!("{architecture}.{name}_feat_in"), layer.in_features as u32);
                m.set(&format!("{architecture}.{name}_feat_out"), layer.out_features as u32);
            }
        } else if !self.dense.is_empty() {
            let column = |of: fn(&DenseConfig) -> u32| self.dense.iter().map(of).collect::<Vec<_>>();
            m.set_strs(DENSE_KEY, self.dense.iter().map(|layer| layer.activation.name()));
            m.set_numbers(DENSE_IN_KEY, &column(|layer| layer.in_features as u32));
            m.set_numbers(DENSE_OUT_KEY, &column(|layer| layer.out_features as u32));
            m.set_numbers(DENSE_BIAS_KEY, &self.dense.iter().map(|layer| layer.bias).collect::<Vec<_>>());
        }
        Ok(())
    }

    /// What the tensors of layer `i` after pooling are called in a GGUF file, before `.weight` and `.bias`.
    pub fn dense_tensor(&self, i: usize, architecture: &str) -> String {
        match STANDARD_DENSE.get(i) {
            Some(name) if self.has_standard_dense(architecture) => (*name).to_owned(),
            _ => format!("dense.{i}"),
        }
    }

    fn has_standard_dense(&self, architecture: &str) -> bool {
        architecture == STANDARD_DENSE_OF
            && self.dense.len() == STANDARD_DENSE.len()
            && self.dense.iter().all(|layer| !layer.bias && layer.activation == Activation::Identity)
    }
}

fn pooling(metadata: &Metadata, architecture: &str, sources: &mut Sources) -> Result<Vec<PoolingMode>> {
    if let Some(names) = metadata.strs(POOLING_KEY)? {
        sources.pooling = POOLING_KEY.into();
        let modes = names.map(PoolingMode::by_name).collect::<Result<Vec<_>>>();
        return modes.map_err(|e| e.context(POOLING_KEY));
    }
    let key = format!("{architecture}.pooling_type");
    if let Some(id) = metadata.u32(&key)? {
        sources.pooling.clone_from(&key);
        let mode = PoolingMode::from_gguf(id).map_err(|e| e.context(&key))?;
        return Ok(mode.into_iter().collect());
    }
    let causal = arch::find(architecture).is_ok_and(|a| a.family == Family::Decoder);
    if causal {
        sources.pooling = format!("none, because {key} is missing");
        return Ok(Vec::new());
    }
    sources.pooling = format!("mean, because {key} is missing");
    Ok(vec![PoolingMode::Mean])
}

fn dense(metadata: &Metadata, architecture: &str) -> Result<Vec<DenseConfig>> {
    if let Some(names) = metadata.strs(DENSE_KEY)? {
        let activations = names.map(Activation::by_name).collect::<Result<Vec<_>>>();
        let activations = activations.map_err(|e| e.context(DENSE_KEY))?;
        let numbers = |key| Ok::<_, Error>(metadata.usizes(key)?.unwrap_or_default());
        let (from, to) = (numbers(DENSE_IN_KEY)?, numbers(DENSE_OUT_KEY)?);
        let biases = metadata.bools(DENSE_BIAS_KEY)?.unwrap_or_default();
        let count = activations.len();
        if count > MAX_DENSE || [from.len(), to.len(), biases.len()].iter().any(|len| *len != count) {
            bail!(
                InvalidFile,
                "{DENSE_KEY} lists {count} layers; {DENSE_IN_KEY}, {DENSE_OUT_KEY} and {DENSE_BIAS_KEY} must have as \
                 many values, {MAX_DENSE} at most"
            );
        }
        let layer = |i: usize| DenseConfig {
            source: DenseSource::Gguf(format!("dense.{i}")),
            in_features: from[i],
            out_features: to[i],
            bias: biases[i],
            activation: activations[i],
        };
        return checked((0..count).map(layer).collect());
    }
    let mut layers = Vec::new();
    for name in STANDARD_DENSE {
        let key = |end: &str| format!("{architecture}.{name}_{end}");
        let Some(in_features) = metadata.usize(&key("feat_in"))? else { break };
        layers.push(DenseConfig {
            source: DenseSource::Gguf(name.to_owned()),
            in_features,
            out_features: metadata.require_usize(&key("feat_out"))?,
            bias: false,
            activation: Activation::Identity,
        });
    }
    checked(layers)
}

fn checked(layers: Vec<DenseConfig>) -> Result<Vec<DenseConfig>> {
    for layer in &layers {
        for features in [layer.in_features, layer.out_features] {
            if !(1..=MAX_FEATURES).contains(&features) {
                bail!(InvalidFile, "{}: {features} is no size of a vector", layer.source);
            }
        }
    }
    super::folder::check_sizes(&layers)?;
    Ok(layers)
}
