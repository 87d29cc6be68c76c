//! Language models: prompts to continuations.
//!
//! - [`LanguageModel`] loads a model and generates: tokenizer, prefill in chunks, sampling, stop strings, streaming.
//! - [`Conversation`] answers messages through the model's chat template, and keeps its cache between turns.
//! - [`DecodeSession`] is the step below: new tokens of several sequences that share a cache, and their logits.
//!
//! Invariants: a prompt that does not fit is an error, never cut; a request whose logits are not finite fails alone and leaves
//! nothing behind; the same seed and options give the same tokens.

mod cache;
mod conversation;
mod forward;
mod generate;
mod model;
mod options;
mod output;
mod session;

pub use crate::cancel::CancelToken;
pub use conversation::Conversation;
pub use model::{LanguageMemory, LanguageModel};
pub use options::{GenerateOptions, LanguageOptions};
pub use output::{FinishReason, GenerateEvent, GenerateTimings, Generation};
pub use session::{DecodeSession, Request, StepLogits, Wanted};
