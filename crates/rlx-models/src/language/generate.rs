//! Generating a continuation.

use std::ops::ControlFlow;
use std::sync::Arc;

use rlx_ir::{Tick, bail};

use super::cache::Cache;
use super::model::LanguageModel;
use super::options::GenerateOptions;
use super::output::{FinishReason, GenerateEvent, GenerateTimings, Generation};
use super::session::Wanted;
use crate::sampling::{Sampler, SamplingParams};
use crate::text::{EncodeOptions, StopMatcher, StreamDecoder, Tokenizer};
use crate::{Error, Result};

impl LanguageModel {
    /// Continues `prompt`, and tells `on_event` what happens; its `Break` ends the generation.
    ///
    /// BOS is put first where the model's metadata says so; special tokens in the prompt are parsed. An empty prompt stands for
    /// BOS, or where there is none for the end of a text before.
    ///
    /// # Errors
    /// `ContextExceeded` where the prompt does not fit; `NonFinite` where logits are no numbers: later generations are not
    /// touched by it; `InvalidArgument` for options out of range; errors of the tokenizer and of the device.
    pub fn generate(
        &self,
        prompt: &str,
        options: &GenerateOptions,
        on_event: impl FnMut(GenerateEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Generation> {
        let ids = self.prompt_ids(prompt)?;
        self.run_alone(&ids, self.text_stream(options)?, options, on_event)
    }

    /// Continues `prompt_ids`; the text stays empty, and stop strings are not looked for. Needs no tokenizer.
    ///
    /// # Errors
    /// As [`generate`](Self::generate); `InvalidArgument` for a prompt without tokens.
    pub fn generate_ids(
        &self,
        prompt_ids: &[u32],
        options: &GenerateOptions,
        on_event: impl FnMut(GenerateEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Generation> {
        let text = TextStream { decoder: None, stop: StopMatcher::default(), text: String::new() };
        self.run_alone(prompt_ids, text, options, on_event)
    }

    /// The tokens of `prompt` as [`generate`](Self::generate) takes them.
    ///
    /// # Errors
    /// Errors of the tokenizer.
    pub fn prompt_ids(&self, prompt: &str) -> Result<Vec<u32>> {
        let mut ids = self.encode(prompt, EncodeOptions::default())?;
        if ids.is_empty() {
            let special = self.tokenizer()?.special_tokens();
            ids.extend(special.bos.or(special.eos));
        }
        Ok(ids)
    }

    /// The tokens of `text`, each of which the network has.
    pub(super) fn encode(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>> {
        let tokenizer = self.tokenizer()?;
        let ids = tokenizer.encode(text, options)?.ids;
        tokenizer.check_ids(&ids, self.shape().vocab_size)?;
        Ok(ids)
    }

    /// The text of a continuation with these options.
    pub(super) fn text_stream(&self, options: &GenerateOptions) -> Result<TextStream> {
        Ok(TextStream {
            decoder: Some(StreamDecoder::continuation(self.tokenizer()?.clone())),
            stop: StopMatcher::new(options.stop.iter().cloned())?,
            text: String::new(),
        })
    }

    /// Runs in the memory that the last generation left.
    fn run_alone(
        &self,
        prompt: &[u32],
        text: TextStream,
        options: &GenerateOptions,
        on_event: impl FnMut(GenerateEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Generation> {
        let mut cache = Cache::new(self.check_out()?);
        // After an error the memory is dropped: whatever it holds reaches nobody.
        let generation = self.run(prompt, text, options, &mut cache, on_event)?;
        cache.clear()?;
        self.check_in(cache.session);
        Ok(generation)
    }

    /// Continues `prompt`, of which the cache may hold a part already.
    pub(super) fn run(
        &self,
        prompt: &[u32],
        mut text: TextStream,
        options: &GenerateOptions,
        cache: &mut Cache,
        mut on_event: impl FnMut(GenerateEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Generation> {
        if options.max_tokens < -1 {
            bail!(InvalidArgument, "max_tokens is {}, and must be -1 or more", options.max_tokens);
        }
        let context = self.limits().context;
        if prompt.len() > context || prompt.len() == context && options.max_tokens != 0 {
            let room = if prompt.len() == context { ", so no token fits after them" } else { "" };
            bail!(
                ContextExceeded,
                "the prompt has {} tokens, but the context holds {context}{room}; ask for a larger one, or for less text",
                prompt.len()
            );
        }
        let (known_ids, sampling) = match &text.decoder {
            // Only what can be written is sampled: networks have rows that stand for no token.
            Some(_) => {
                let (known_ids, gaps) = self.known_ids()?;
                let ban = |sampling: SamplingParams, &id: &u32| sampling.logit_bias(id, f32::NEG_INFINITY);
                (known_ids, gaps.iter().fold(options.sampling.clone(), ban))
            }
            None => (usize::MAX, options.sampling.clone()),
        };
        let sampler = Sampler::new(sampling)?;
        sampler.check(known_ids.min(self.shape().vocab_size))?;
        let mut run = Run {
            sampler,
            known_ids,
            stop_tokens: self.stop_tokens()?,
            max_tokens: usize::try_from(options.max_tokens).unwrap_or(usize::MAX),
            options,
            token_ids: Vec::new(),
            timings: GenerateTimings::default(),
        };
        let mut cached_tokens = 0;
        let finish_reason = if run.max_tokens == 0 {
            FinishReason::Length
        } else if prompt.is_empty() {
            bail!(InvalidArgument, "the prompt has no tokens");
        } else {
            cache.keep_prefix(prompt)?;
            cached_tokens = cache.len();
            match run.all(cache, prompt, &mut text, &mut on_event) {
                Ok(reason) => reason,
                Err(e) => {
                    cache.discard()?;
                    return Err(e);
                }
            }
        };
        // Nothing is left to stop. Whoever cancelled is told nothing more, and has the text of all tokens nevertheless.
        let _ = match finish_reason {
            FinishReason::Stop => ControlFlow::Continue(()),
            FinishReason::Cancelled => text.finish(&mut go_on),
            _ => text.finish(&mut on_event),
        };
        Ok(Generation {
            text: text.text,
            token_ids: run.token_ids,
            prompt_tokens: prompt.len(),
            cached_tokens,
            finish_reason,
            timings: run.timings,
        })
    }
}

/// The state of a generation besides its text and its cache.
struct Run<'a> {
    sampler: Sampler,
    /// Ids from here on are never sampled.
    known_ids: usize,
    stop_tokens: Vec<u32>,
    max_tokens: usize,
    options: &'a GenerateOptions,
    token_ids: Vec<u32>,
    timings: GenerateTimings,
}

impl Run<'_> {
    fn all(
        &mut self,
        cache: &mut Cache,
        prompt: &[u32],
        text: &mut TextStream,
        on_event: &mut dyn FnMut(GenerateEvent<'_>) -> ControlFlow<()>,
    ) -> Result<FinishReason> {
        let (context, batch) = (cache.session.limits().context, cache.session.limits().tokens);
        let (held, new) = prompt.split_at(cache.len());
        held.iter().for_each(|&id| self.sampler.accept(id));
        self.timings.prompt_tokens = new.len();
        let start = Tick::now();
        let mut next = None;
        for chunk in new.chunks(batch) {
            if self.options.cancel.is_cancelled() {
                return Ok(FinishReason::Cancelled);
            }
            let done = cache.len() + chunk.len();
            let last = done == prompt.len();
            let wanted = if last { Wanted::Last } else { Wanted::None };
            chunk.iter().for_each(|&id| self.sampler.accept(id));
            let logits = cache.step(chunk, wanted)?;
            if last {
                self.timings.prefill_ns = start.elapsed_ns();
                next = Some(self.sample(logits).map_err(|e| at(e, done))?);
            }
            if on_event(GenerateEvent::Prompt { done, total: prompt.len() }).is_break() {
                return Ok(FinishReason::Cancelled);
            }
        }
        let Some(mut token) = next else { bail!(Bug, "a prompt without logits") };
        let start = Tick::now();
        loop {
            if self.stop_tokens.contains(&token) {
                return Ok(FinishReason::Eos);
            }
            self.token_ids.push(token);
            self.sampler.accept(token);
            if on_event(GenerateEvent::Token(token)).is_break() {
                return Ok(text.push(token, &mut go_on).unwrap_or(FinishReason::Cancelled));
            }
            if let Some(reason) = text.push(token, on_event) {
                return Ok(reason);
            }
            // The last token is not in the cache.
            if self.token_ids.len() >= self.max_tokens || cache.len() + 1 >= context {
                return Ok(FinishReason::Length);
            }
            if self.options.cancel.is_cancelled() {
                return Ok(FinishReason::Cancelled);
            }
            let logits = cache.step(&[token], Wanted::Last)?;
            token = self.sample(logits).map_err(|e| at(e, prompt.len() + self.token_ids.len()))?;
            self.timings.decode_steps += 1;
            self.timings.decode_ns = start.elapsed_ns();
        }
    }
}

impl Run<'_> {
    fn sample(&mut self, logits: &[f32]) -> Result<u32> {
        self.sampler.sample(&logits[..self.known_ids.min(logits.len())])
    }
}

/// Events that nobody wants.
fn go_on(_: GenerateEvent<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn at(e: Error, tokens: usize) -> Error {
    e.context(format!("after {tokens} tokens"))
}

/// Tokens to text that is certain.
pub(super) struct TextStream {
    decoder: Option<StreamDecoder<Arc<Tokenizer>>>,
    stop: StopMatcher,
    text: String,
}

impl TextStream {
    fn push(
        &mut self,
        token: u32,
        on_event: &mut dyn FnMut(GenerateEvent<'_>) -> ControlFlow<()>,
    ) -> Option<FinishReason> {
        let piece = self.decoder.as_mut()?.push(token);
        let (piece, stopped) = self.stop.push(&piece);
        let told = self.tell(&piece, on_event);
        if stopped {
            return Some(FinishReason::Stop);
        }
        told.is_break().then_some(FinishReason::Cancelled)
    }

    /// Lets go what was held back.
    fn finish(&mut self, on_event: &mut dyn FnMut(GenerateEvent<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        let rest = self.decoder.take().map(StreamDecoder::finish).unwrap_or_default();
        let (mut piece, stopped) = self.stop.push(&rest);
        if !stopped {
            piece += &std::mem::take(&mut self.stop).finish();
        }
        self.tell(&piece, on_event)
    }

    fn tell(
        &mut self,
        piece: &str,
        on_event: &mut dyn FnMut(GenerateEvent<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if piece.is_empty() {
            return ControlFlow::Continue(());
        }
        self.text.push_str(piece);
        on_event(GenerateEvent::Text(piece))
    }
}
