//! `rlx chat`: a conversation.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;

use clap::Args;
use rlx::ir::bail;
use rlx::models::language::{GenerateEvent, Generation};
use rlx::prelude::*;

use crate::error::{Error, Result};
use crate::lines::Lines;
use crate::model;
use crate::options::{Format, Global, ModelArgs};
use crate::output::{Report, Stdout};
use crate::sampling::SamplingArgs;

/// Talks with a model: each line of stdin is a message
#[derive(Args, Debug)]
pub struct Chat {
    #[command(flatten)]
    model: ModelArgs,
    /// What the model is to keep to, as a message before all others
    #[arg(long, value_name = "S", allow_hyphen_values = true)]
    system: Option<String>,
    #[command(flatten)]
    sampling: SamplingArgs,
}

impl Chat {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        let options = self.sampling.options()?;
        let runtime = global.runtime()?;
        let model = model::language(&runtime, global, &self.model, self.sampling.context())?;
        // A model that cannot chat says so before anybody types.
        model.chat_template()?;
        tracing::info!("seed {}", options.sampling.seed_value());
        let mut conversation = model.conversation()?;
        let mut messages: Vec<ChatMessage> = self.system.iter().map(ChatMessage::system).collect();
        let mut lines = Messages::new(global);
        let mut out = Stdout::lock();
        let mut turns = 0;
        while let Some(line) = lines.next()? {
            turns += 1;
            messages.push(ChatMessage::user(line));
            let (mut written, mut began) = (Ok(()), false);
            let answer = conversation.reply(&messages, &ChatOptions::default(), &options, |event| {
                if let (GenerateEvent::Text(piece), Format::Text) = (event, format) {
                    began = true;
                    written = out.text(piece).and_then(|()| out.flush());
                }
                if written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if format == Format::Text && (began || answer.is_ok()) {
                // What follows on stderr starts on a line of its own, also where the work failed.
                written = written.and_then(|()| out.text("\n")).and_then(|()| out.flush());
            }
            let answer = answer?;
            written?;
            if format == Format::Json {
                out.json_line(&Report::of_turn(&answer))?;
            }
            out.flush()?;
            tell(&answer);
            self.sampling.warn_if_full(&answer, model.limits().context);
            messages.push(ChatMessage::assistant(answer.text));
        }
        if turns == 0 && !lines.terminal {
            bail!(InvalidArgument, "no text: stdin holds no line to answer");
        }
        Ok(())
    }
}

/// Says on stderr how a turn went.
fn tell(answer: &Generation) {
    tracing::info!(
        "{} prompt tokens, {} of them in the cache, the others at {:.1}/s, {} tokens at {:.1}/s, ended by {}",
        answer.prompt_tokens,
        answer.cached_tokens,
        answer.timings.prefill_tok_per_s(),
        answer.token_ids.len(),
        answer.timings.decode_tok_per_s(),
        answer.finish_reason.name()
    );
}

/// The lines of stdin that are not blank.
struct Messages {
    lines: Lines,
    /// Somebody types.
    terminal: bool,
    /// A mark is shown where the next line is waited for.
    mark: bool,
}

impl Messages {
    fn new(global: &Global) -> Self {
        let terminal = std::io::stdin().is_terminal();
        let mark = terminal && std::io::stderr().is_terminal() && !global.quiet;
        Self { lines: Lines::default(), terminal, mark }
    }

    fn next(&mut self) -> Result<Option<String>> {
        loop {
            self.show("> ");
            match self.lines.next(&mut std::io::stdin().lock(), "stdin")? {
                None => {
                    self.show("\n");
                    return Ok(None);
                }
                Some(text) if !text.trim().is_empty() => return Ok(Some(text)),
                Some(_) => {}
            }
        }
    }

    fn show(&self, mark: &str) {
        if self.mark {
            let mut stderr = std::io::stderr();
            let _ = stderr.write_all(mark.as_bytes()).and_then(|()| stderr.flush());
        }
    }
}
