//! What a generation made, for machines.

use rlx::models::language::Generation;
use serde::Serialize;

/// The JSON of a continuation or of one turn of a conversation.
#[derive(Serialize)]
pub struct Report<'a> {
    text: &'a str,
    token_ids: &'a [u32],
    prompt_tokens: usize,
    /// Of a turn: how many of these were in the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_tokens: Option<usize>,
    finish_reason: &'static str,
    prefill_tok_per_s: f64,
    decode_tok_per_s: f64,
}

impl<'a> Report<'a> {
    /// Of a continuation.
    pub fn of_prompt(made: &'a Generation) -> Self {
        Self {
            text: &made.text,
            token_ids: &made.token_ids,
            prompt_tokens: made.prompt_tokens,
            cached_tokens: None,
            finish_reason: made.finish_reason.name(),
            prefill_tok_per_s: made.timings.prefill_tok_per_s(),
            decode_tok_per_s: made.timings.decode_tok_per_s(),
        }
    }

    /// Of a turn.
    pub fn of_turn(made: &'a Generation) -> Self {
        Self { cached_tokens: Some(made.cached_tokens), ..Self::of_prompt(made) }
    }
}
