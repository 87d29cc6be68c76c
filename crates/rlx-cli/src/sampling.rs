//! Options of the commands that write text.

use std::hash::{BuildHasher, RandomState};

use clap::Args;
use rlx::models::language::{FinishReason, GenerateOptions, Generation};
use rlx::models::sampling::SamplingParams;

use crate::error::Result;

/// How tokens are chosen, how many, and what ends them.
#[derive(Args, Debug)]
pub struct SamplingArgs {
    /// The most tokens; -1 goes on until a stop token or the end of the context
    #[arg(short, value_name = "N", default_value_t = -1, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1..))]
    n: i64,
    /// Temperature; 0 always takes the likeliest token
    #[arg(long, value_name = "T", default_value_t = 0.8, allow_negative_numbers = true)]
    temp: f32,
    /// Keeps the K likeliest tokens; 0 keeps all
    #[arg(long, value_name = "K", default_value_t = 40, allow_negative_numbers = true)]
    top_k: usize,
    /// Keeps the likeliest tokens that together reach this probability
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    top_p: f32,
    /// Keeps tokens of at least this part of the likeliest one's probability
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    min_p: f32,
    /// Divides positive logits of tokens that came before, and multiplies negative ones; 1 is none
    #[arg(long, value_name = "X", default_value_t = 1.0, allow_negative_numbers = true)]
    repeat_penalty: f32,
    /// How many of the last tokens the penalties look at; 0 is none, -1 all
    #[arg(long, value_name = "N", default_value_t = 64, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1..))]
    repeat_last_n: i64,
    /// Is taken from the logits of tokens that came before
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    presence_penalty: f32,
    /// Is taken from the logit of a token as often as it came before
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    frequency_penalty: f32,
    /// Adds X to the logit of token ID, -inf bans it; may be given several times
    #[arg(long, value_name = "ID=X", value_parser = logit_bias)]
    logit_bias: Vec<(u32, f32)>,
    /// The same seed gives the same text [default: random]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Ends before this text; may be given several times
    #[arg(long, value_name = "STR", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// The most tokens of prompt and continuation together; 0 takes the model's own, up to 4096
    #[arg(short, value_name = "CTX", default_value_t = 0, allow_negative_numbers = true)]
    c: usize,
}

impl SamplingArgs {
    /// What the library is asked for; a seed is drawn where none is given.
    pub fn options(&self) -> Result<GenerateOptions> {
        let mut sampling = SamplingParams::default()
            .temperature(self.temp)
            .top_k(self.top_k)
            .top_p(self.top_p)
            .min_p(self.min_p)
            .repetition_penalty(self.repeat_penalty)
            .penalty_last_n(usize::try_from(self.repeat_last_n).unwrap_or(usize::MAX))
            .presence_penalty(self.presence_penalty)
            .frequency_penalty(self.frequency_penalty)
            .seed(self.seed.unwrap_or_else(random_seed));
        for &(token, bias) in &self.logit_bias {
            sampling = sampling.logit_bias(token, bias);
        }
        sampling.validate()?;
        Ok(GenerateOptions {
            max_tokens: self.n,
            sampling,
            stop: self.stop.clone(),
            ..GenerateOptions::default()
        })
    }

    /// Warns of a text that the end of the context has cut off before all its tokens were there.
    pub fn warn_if_full(&self, done: &Generation, context: usize) {
        let tokens = done.token_ids.len();
        let all = usize::try_from(self.n) == Ok(tokens);
        if done.finish_reason == FinishReason::Length && !all && done.prompt_tokens + tokens >= context {
            tracing::warn!(
                "the context of {context} tokens is full, and the text is cut off: a larger one is asked for with -c"
            );
        }
    }

    /// The context in tokens; 0 leaves it to the model.
    pub fn context(&self) -> usize {
        self.c
    }
}

/// A number that differs from process to process.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

fn logit_bias(text: &str) -> std::result::Result<(u32, f32), String> {
    let parts = text.split_once('=').ok_or("expected ID=X")?;
    let token = parts.0.trim().parse().map_err(|e| format!("{:?} is no token id: {e}", parts.0))?;
    let bias = parts.1.trim().parse().map_err(|e| format!("{:?} is no number: {e}", parts.1))?;
    Ok((token, bias))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bias_is_a_token_and_a_number() {
        assert_eq!(logit_bias("12=-1.5"), Ok((12, -1.5)));
        assert_eq!(logit_bias("0=-inf"), Ok((0, f32::NEG_INFINITY)));
        for bad in ["", "12", "x=1", "1=x", "-1=2", "1=2=3"] {
            assert!(logit_bias(bad).is_err(), "{bad}");
        }
    }
}
