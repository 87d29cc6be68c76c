//! All that turns the output of a network into the vector of a text.

use std::collections::BTreeMap;

use rlx_ir::bail;

use super::{DenseConfig, PoolingMode};
use crate::{Error, Result};

/// Where the facts of an [`EmbeddingConfig`] came from: file names, metadata keys, or a rule. For people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Of the pooling.
    pub pooling: String,
    /// Of the normalisation.
    pub normalize: String,
    /// Of the length limit.
    pub max_seq_length: String,
    /// Of the prompts.
    pub prompts: String,
}

/// What follows the network, and what goes before the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingConfig {
    /// How token vectors are pooled; several are concatenated in this order. Empty where the model gives a vector per token
    /// only, and cannot embed texts unless somebody says how.
    pub pooling: Vec<PoolingMode>,
    /// Whether the tokens of a prompt take part in pooling.
    pub pool_prompt: bool,
    /// Linear layers after pooling, in order.
    pub dense: Vec<DenseConfig>,
    /// How many components of a vector are kept, before normalisation; `None` or more than there are: all.
    pub dims: Option<usize>,
    /// Whether the vector is divided by its length at the end.
    pub normalize: bool,
    /// The most tokens of a text, added ones included; see [`EmbeddingConfig::limit`]. `None`: no limit of its own.
    pub max_seq_length: Option<usize>,
    /// Whether the text is folded to lower case before the tokenizer.
    pub lowercase: bool,
    /// Texts to put before a text, by name.
    pub prompts: BTreeMap<String, String>,
    /// The name of the prompt that is used where none is asked for.
    pub default_prompt: Option<String>,
    /// Where each fact came from.
    pub sources: Sources,
}

impl EmbeddingConfig {
    /// The most tokens that a text may have: the least of its own limit, the tokenizer's and the positions that the
    /// network has.
    pub fn limit(&self, tokenizer: Option<usize>, positions: Option<usize>) -> Option<usize> {
        [self.max_seq_length, tokenizer, positions].into_iter().flatten().min()
    }

    /// What goes before a text: the prompt of that name, or the default one.
    ///
    /// # Errors
    /// `InvalidArgument` for a name that is not there, with the list of those that are.
    pub fn prompt(&self, name: Option<&str>) -> Result<&str> {
        let Some(name) = name.or(self.default_prompt.as_deref()) else { return Ok("") };
        match self.prompts.get(name) {
            Some(prompt) => Ok(prompt),
            None if self.prompts.is_empty() => {
                bail!(InvalidArgument, "there is no prompt \"{name}\": the model has none")
            }
            None => {
                let names: Vec<&str> = self.prompts.keys().map(String::as_str).collect();
                bail!(InvalidArgument, "there is no prompt \"{name}\"; the model has {}", names.join(", "))
            }
        }
    }
}
