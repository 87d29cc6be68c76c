//! What a user can ask of a sampler.

use rlx_ir::bail;

use crate::{Error, Result};

/// How the next token is chosen. Set by builder methods; checked by [`SamplingParams::validate`], which
/// [`super::Sampler::new`] calls.
///
/// ```
/// use rlx_models::sampling::SamplingParams;
///
/// let params = SamplingParams::default().temperature(0.7).top_k(50).seed(1);
/// assert!(params.validate().is_ok());
/// let e = params.top_p(1.5).validate().unwrap_err();
/// assert_eq!(e.to_string(), "top_p is 1.5, and must be within 0 to 1");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    pub(super) temperature: f32,
    pub(super) top_k: usize,
    pub(super) top_p: f32,
    pub(super) min_p: f32,
    pub(super) repetition_penalty: f32,
    pub(super) presence_penalty: f32,
    pub(super) frequency_penalty: f32,
    pub(super) penalty_last_n: usize,
    pub(super) logit_bias: Vec<(u32, f32)>,
    pub(super) seed: u64,
}

impl Default for SamplingParams {
    /// Temperature 0.8, top-k 40, top-p 0.95, min-p 0.05, no penalties, seed 0.
    fn default() -> Self {
        Self {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repetition_penalty: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            penalty_last_n: 64,
            logit_bias: Vec::new(),
            seed: 0,
        }
    }
}

impl SamplingParams {
    /// Always the likeliest token.
    pub fn greedy() -> Self {
        Self::default().temperature(0.0)
    }

    /// Divides the logits; 0 is greedy. Not negative.
    #[must_use]
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Keeps the `top_k` likeliest tokens; 0 keeps all.
    #[must_use]
    pub fn top_k(mut self, top_k: usize) -> Self {
        self.top_k = top_k;
        self
    }

    /// Keeps the likeliest tokens that together reach this probability; 1 keeps all. Within 0 to 1.
    #[must_use]
    pub fn top_p(mut self, top_p: f32) -> Self {
        self.top_p = top_p;
        self
    }

    /// Keeps tokens of at least this part of the likeliest token's probability; 0 keeps all. Within 0 to 1.
    #[must_use]
    pub fn min_p(mut self, min_p: f32) -> Self {
        self.min_p = min_p;
        self
    }

    /// Divides positive logits of tokens that came before, and multiplies negative ones; 1 is none. Above 0.
    #[must_use]
    pub fn repetition_penalty(mut self, penalty: f32) -> Self {
        self.repetition_penalty = penalty;
        self
    }

    /// Is taken from the logits of tokens that came before.
    #[must_use]
    pub fn presence_penalty(mut self, penalty: f32) -> Self {
        self.presence_penalty = penalty;
        self
    }

    /// Is taken from the logit of a token as often as it came before.
    #[must_use]
    pub fn frequency_penalty(mut self, penalty: f32) -> Self {
        self.frequency_penalty = penalty;
        self
    }

    /// How many of the last tokens the penalties look at.
    #[must_use]
    pub fn penalty_last_n(mut self, tokens: usize) -> Self {
        self.penalty_last_n = tokens;
        self
    }

    /// Is added to the logit of `token`; negative infinity bans it.
    #[must_use]
    pub fn logit_bias(mut self, token: u32, bias: f32) -> Self {
        self.logit_bias.push((token, bias));
        self
    }

    /// The same seed gives the same tokens from the same logits, in every version and on every machine.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Whether the likeliest token is always taken.
    pub fn is_greedy(&self) -> bool {
        self.temperature == 0.0
    }

    /// The seed.
    pub fn seed_value(&self) -> u64 {
        self.seed
    }

    /// Checks every parameter.
    ///
    /// # Errors
    /// `InvalidArgument` with the name, the value and the range of the first that is wrong.
    pub fn validate(&self) -> Result<()> {
        let ranges = [
            ("temperature", self.temperature, 0.0, f32::MAX),
            ("top_p", self.top_p, 0.0, 1.0),
            ("min_p", self.min_p, 0.0, 1.0),
            ("repetition_penalty", self.repetition_penalty, f32::MIN_POSITIVE, f32::MAX),
            ("presence_penalty", self.presence_penalty, -f32::MAX, f32::MAX),
            ("frequency_penalty", self.frequency_penalty, -f32::MAX, f32::MAX),
        ];
        for (name, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                let range = match (low, high) {
                    (0.0, 1.0) => "within 0 to 1",
                    (0.0, _) => "0 or more, and finite",
                    (f32::MIN_POSITIVE, _) => "above 0, and finite",
                    _ => "finite",
                };
                bail!(InvalidArgument, "{name} is {value}, and must be {range}");
            }
        }
        for (token, bias) in &self.logit_bias {
            if bias.is_nan() || *bias == f32::INFINITY {
                bail!(InvalidArgument, "logit_bias of token {token} is {bias}, and must be finite or -inf");
            }
        }
        Ok(())
    }
}
