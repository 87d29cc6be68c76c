//! `rlx generate`: the continuation of a prompt.

use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;

use clap::Args;
use rlx::models::language::{GenerateEvent, GenerateOptions};
use rlx::models::sampling::SamplingParams;
use serde::Serialize;

use crate::error::Result;
use crate::memory::peak_rss_bytes;
use crate::model;
use crate::options::{Format, Global, ModelArgs};
use crate::output::{Stdout, bytes};

/// Continues a prompt.
#[derive(Args, Debug)]
pub struct Generate {
    #[command(flatten)]
    model: ModelArgs,
    /// The text to continue, as it is
    #[arg(short, long, value_name = "P", allow_hyphen_values = true)]
    prompt: String,
    /// The most tokens; -1 goes on until a stop token or the end of the context
    #[arg(short, value_name = "N", default_value_t = -1, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1..))]
    n: i64,
    /// Temperature; 0 always takes the likeliest token
    #[arg(long, value_name = "T", default_value_t = 0.8, allow_negative_numbers = true)]
    temp: f32,
    /// Keeps the K likeliest tokens; 0 keeps all
    #[arg(long, value_name = "K", default_value_t = 40)]
    top_k: usize,
    /// Keeps the likeliest tokens that together reach this probability
    #[arg(long, value_name = "P", default_value_t = 0.95, allow_negative_numbers = true)]
    top_p: f32,
    /// Keeps tokens of at least this part of the likeliest one's probability
    #[arg(long, value_name = "P", default_value_t = 0.05, allow_negative_numbers = true)]
    min_p: f32,
    /// The same seed gives the same text [default: random]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Ends before this text; may be given several times
    #[arg(long, value_name = "STR", allow_hyphen_values = true)]
    stop: Vec<String>,
    /// Tokens of prompt and continuation; 0 takes the model's own, up to 4096
    #[arg(short, value_name = "CTX", default_value_t = 0)]
    c: usize,
}

#[derive(Serialize)]
struct Report<'a> {
    text: &'a str,
    token_ids: &'a [u32],
    prompt_tokens: usize,
    finish_reason: &'static str,
    prefill_tok_per_s: f64,
    decode_tok_per_s: f64,
}

impl Generate {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        let seed = self.seed.unwrap_or_else(random_seed);
        let options = GenerateOptions {
            max_tokens: self.n,
            sampling: self.sampling(seed),
            stop: self.stop.clone(),
            ..GenerateOptions::default()
        };
        options.sampling.validate()?;
        let runtime = global.runtime()?;
        let model = model::language(&runtime, global, &self.model, self.c)?;
        tracing::info!("seed {seed}");
        if tracing::enabled!(tracing::Level::INFO) {
            let memory = model.memory()?;
            tracing::info!(
                "memory: weights {} besides the mapped file, arena {}, keys and values {} for {} tokens, taken as they fill",
                bytes(memory.weights),
                bytes(memory.arena),
                bytes(memory.kv_reserved),
                model.limits().context
            );
        }
        let mut out = Stdout::lock();
        let mut written = Ok(());
        let generation = model.generate(&self.prompt, &options, |event| {
            if let (GenerateEvent::Text(piece), Format::Text) = (event, format) {
                written = out.text(piece).and_then(|()| out.flush());
            }
            if written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if format == Format::Text {
            // Also where the work failed: what follows on stderr starts on a line of its own.
            written = written.and_then(|()| out.text("\n")).and_then(|()| out.flush());
        }
        let generation = generation?;
        written?;
        let timings = &generation.timings;
        tracing::info!(
            "{} prompt tokens at {:.1}/s, {} tokens at {:.1}/s, ended by {}",
            generation.prompt_tokens,
            timings.prefill_tok_per_s(),
            generation.token_ids.len(),
            timings.decode_tok_per_s(),
            generation.finish_reason.name()
        );
        tracing::info!(bytes = peak_rss_bytes(), "peak memory");
        if format == Format::Json {
            out.json_line(&Report {
                text: &generation.text,
                token_ids: &generation.token_ids,
                prompt_tokens: generation.prompt_tokens,
                finish_reason: generation.finish_reason.name(),
                prefill_tok_per_s: timings.prefill_tok_per_s(),
                decode_tok_per_s: timings.decode_tok_per_s(),
            })?;
        }
        out.flush()
    }

    fn sampling(&self, seed: u64) -> SamplingParams {
        SamplingParams::default()
            .temperature(self.temp)
            .top_k(self.top_k)
            .top_p(self.top_p)
            .min_p(self.min_p)
            .seed(seed)
    }
}

/// A number that differs from process to process.
fn random_seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
