//! What comes out of a generation.

/// Why a generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The most tokens that were asked for, or the end of the context.
    Length,
    /// A stop string.
    Stop,
    /// A stop token of the model.
    Eos,
    /// The caller.
    Cancelled,
}

impl FinishReason {
    /// The word for it: `length`, `stop`, `eos`, `cancelled`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Stop => "stop",
            Self::Eos => "eos",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What happens during a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GenerateEvent<'a> {
    /// So many tokens of the prompt are in the cache.
    Prompt {
        /// Tokens that are done.
        done: usize,
        /// Tokens of the prompt.
        total: usize,
    },
    /// A token was chosen. Stop tokens are not told.
    Token(u32),
    /// Text that is certain: whole characters, and no start of a stop string.
    Text(&'a str),
}

/// How long a generation took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GenerateTimings {
    /// Tokens of the prompt that were run.
    pub prompt_tokens: usize,
    /// Nanoseconds until the logits after the prompt were there.
    pub prefill_ns: u64,
    /// Steps of one token after that.
    pub decode_steps: usize,
    /// Nanoseconds of these steps, with choosing tokens.
    pub decode_ns: u64,
}

impl GenerateTimings {
    /// Tokens of the prompt per second; 0 where nothing was run.
    pub fn prefill_tok_per_s(&self) -> f64 {
        rate(self.prompt_tokens, self.prefill_ns)
    }

    /// Further tokens per second; 0 where nothing was run.
    pub fn decode_tok_per_s(&self) -> f64 {
        rate(self.decode_steps, self.decode_ns)
    }
}

fn rate(count: usize, ns: u64) -> f64 {
    if ns == 0 { 0.0 } else { count as f64 * 1e9 / ns as f64 }
}

/// A continuation.
#[derive(Clone, Debug, PartialEq)]
pub struct Generation {
    /// The text of all tokens without stop string or stop token: where the caller ended it too, and what it held back as the
    /// possible start of a stop string, of which no event told then.
    pub text: String,
    /// The tokens without stop token. Those that a stop string cut are among them.
    pub token_ids: Vec<u32>,
    /// Tokens of the prompt, BOS included.
    pub prompt_tokens: usize,
    /// Those of them that were in the cache already, and were not run again.
    pub cached_tokens: usize,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// How long it took.
    pub timings: GenerateTimings,
}
