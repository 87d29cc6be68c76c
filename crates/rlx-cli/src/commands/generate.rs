//! `rlx generate`: the continuation of a prompt.

use std::ops::ControlFlow;

use clap::Args;
use rlx::models::language::GenerateEvent;

use crate::error::Result;
use crate::memory::peak_rss_bytes;
use crate::model;
use crate::options::{Format, Global, ModelArgs};
use crate::output::{Report, Stdout, bytes};
use crate::sampling::SamplingArgs;

/// Continues a prompt.
#[derive(Args, Debug)]
pub struct Generate {
    #[command(flatten)]
    model: ModelArgs,
    /// The text to continue, as it is
    #[arg(short, long, value_name = "P", allow_hyphen_values = true)]
    prompt: String,
    #[command(flatten)]
    sampling: SamplingArgs,
}

impl Generate {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        let options = self.sampling.options()?;
        let runtime = global.runtime()?;
        let model = model::language(&runtime, global, &self.model, self.sampling.context())?;
        tracing::info!("seed {}", options.sampling.seed_value());
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
        let (mut written, mut began) = (Ok(()), false);
        let generation = model.generate(&self.prompt, &options, |event| {
            if let (GenerateEvent::Text(piece), Format::Text) = (event, format) {
                began = true;
                written = out.text(piece).and_then(|()| out.flush());
            }
            if written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if format == Format::Text && (began || generation.is_ok()) {
            // What follows on stderr starts on a line of its own, also where the work failed.
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
            out.json_line(&Report::of_prompt(&generation))?;
        }
        out.flush()?;
        self.sampling.warn_if_full(&generation, model.limits().context);
        Ok(())
    }
}
