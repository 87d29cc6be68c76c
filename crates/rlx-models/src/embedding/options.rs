//! How texts become vectors.

use std::fmt;

use crate::cancel::CancelToken;
use crate::options::LoadOptions;
use crate::sentence_transformers::PoolingMode;

/// What goes before each text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Prompt {
    /// The model's default prompt, if it has one.
    #[default]
    Default,
    /// The model's prompt of this name.
    Named(String),
    /// This text.
    Prefix(String),
}

/// What becomes of a text that is too long for the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Truncation {
    /// Its end is cut off, and [`Embedded::truncated`](super::Embedded::truncated) tells so.
    #[default]
    Cut,
    /// It has no vector, but an error.
    Refuse,
}

/// How an embedding model is loaded. The default is what the model's files say.
#[derive(Clone, Debug)]
pub struct EmbeddingOptions {
    /// Device, types and passes.
    pub load: LoadOptions,
    /// Pools like this instead of as the model says.
    pub pooling: Option<PoolingMode>,
    /// Normalises, or does not, instead of as the model says.
    pub normalize: Option<bool>,
    /// What goes before each text, where a request does not say.
    pub prompt: Prompt,
    /// Keeps this many components of a vector, before normalisation.
    pub dims: Option<usize>,
    /// Takes at most this many tokens of a text, where the model does not take fewer.
    pub max_seq_length: Option<usize>,
    /// What becomes of longer texts.
    pub truncation: Truncation,
    /// The most tokens of a batch; one text may have more.
    pub batch_tokens: usize,
}

impl Default for EmbeddingOptions {
    fn default() -> Self {
        Self {
            load: LoadOptions::default(),
            pooling: None,
            normalize: None,
            prompt: Prompt::Default,
            dims: None,
            max_seq_length: None,
            truncation: Truncation::Cut,
            batch_tokens: 2048,
        }
    }
}

/// What one call may say.
#[derive(Default)]
pub struct EmbedRequest<'a> {
    /// What goes before each text; `None` leaves it to the model's options.
    pub prompt: Option<Prompt>,
    /// Called after each batch with the number of texts done and in all.
    pub progress: Option<&'a dyn Fn(usize, usize)>,
    /// Ends the call before its next batch; texts that were in none then have an error of the kind `Cancelled`.
    pub cancel: CancelToken,
}

impl fmt::Debug for EmbedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbedRequest").field("prompt", &self.prompt).finish_non_exhaustive()
    }
}
