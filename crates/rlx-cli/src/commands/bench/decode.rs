//! `rlx bench decode`.

use clap::Args;
use rlx::ir::Tick;
use rlx::models::language::{DecodeSession, Request, Wanted};
use rlx::runtime::pages::Sequence;
use serde::Serialize;

use super::{ms, per_second, print};
use crate::error::Result;
use crate::memory::peak_rss_bytes;
use crate::model;
use crate::options::{Format, Global, ModelArgs};
use crate::workload;

/// A prompt, then one token after the other.
#[derive(Args, Debug)]
pub struct Decode {
    #[command(flatten)]
    model: ModelArgs,
    /// Tokens of the prompt
    #[arg(long, value_name = "P", default_value_t = 512, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    prompt_tokens: u32,
    /// Tokens after it
    #[arg(long, value_name = "G", default_value_t = 64, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    gen_tokens: u32,
}

#[derive(Serialize)]
struct Figures {
    prefill_tok_per_s: f64,
    decode_tok_per_s: f64,
    load_ms: f64,
    compile_ms: f64,
    first_token_ms: f64,
    peak_rss_bytes: u64,
}

impl Decode {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Json, Format::Text])?;
        let (prompt_tokens, gen_tokens) = (self.prompt_tokens as usize, self.gen_tokens as usize);
        let context = prompt_tokens + gen_tokens;
        let runtime = global.runtime()?;
        let load = Tick::now();
        let model = model::language(&runtime, global, &self.model, context)?;
        let load_ns = load.elapsed_ns();
        let ids = workload::token_ids(prompt_tokens, model.shape().vocab_size);
        let mut session = model.session(context)?;
        let mut sequence = Sequence::default();
        // The first run touches the weights and the arena for the first time.
        prefill(&mut session, &mut sequence, ids.get(..model.limits().tokens).unwrap_or(&ids))?;
        session.truncate(&mut sequence, 0)?;

        let start = Tick::now();
        let mut token = prefill(&mut session, &mut sequence, &ids)?;
        let prefill_ns = start.elapsed_ns();
        let start = Tick::now();
        for _ in 0..gen_tokens {
            let step = Request { sequence: &mut sequence, tokens: &[token], logits: Wanted::Last };
            token = likeliest(session.step_one(step)?);
        }
        let decode_ns = start.elapsed_ns();
        print(
            format,
            &Figures {
                prefill_tok_per_s: per_second(prompt_tokens, prefill_ns),
                decode_tok_per_s: per_second(gen_tokens, decode_ns),
                load_ms: ms(load_ns),
                compile_ms: ms(model.compiled().stats().compile_ns()),
                first_token_ms: ms(prefill_ns),
                peak_rss_bytes: peak_rss_bytes(),
            },
        )
    }
}

/// Runs a prompt in steps as large as they go, and gives the likeliest token after it.
fn prefill(session: &mut DecodeSession, sequence: &mut Sequence, ids: &[u32]) -> Result<u32> {
    let largest = session.limits().tokens;
    let mut done = 0;
    let mut token = 0;
    for tokens in ids.chunks(largest) {
        done += tokens.len();
        let last = done == ids.len();
        let logits = if last { Wanted::Last } else { Wanted::None };
        let out = session.step_one(Request { sequence, tokens, logits })?;
        if last {
            token = likeliest(out);
        }
    }
    Ok(token)
}

fn likeliest(logits: &[f32]) -> u32 {
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.map_or(0, |(i, _)| i as u32)
}
