//! Steps over several sequences that share a cache.

use std::ops::Range;

use rlx_ir::bail;
use rlx_runtime::pages::{PageTable, Sequence};
use rlx_runtime::{MemoryUse, RunContext, Session};

use crate::arch::decoder::{DecoderLimits, DecoderShape};
use crate::{Error, Result};

/// Which logits of a request are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// None: more of the prompt follows.
    None,
    /// Those after the last of its tokens.
    Last,
    /// Those after each of its tokens.
    All,
}

/// New tokens of a sequence.
#[derive(Debug)]
pub struct Request<'a> {
    /// The sequence; grows by the tokens.
    pub sequence: &'a mut Sequence,
    /// The tokens, at least one.
    pub tokens: &'a [u32],
    /// Which logits are wanted.
    pub logits: Wanted,
}

/// The logits of a step.
#[derive(Clone, Debug)]
pub struct StepLogits<'a> {
    values: &'a [f32],
    vocab_size: usize,
    rows: Vec<Range<usize>>,
}

impl StepLogits<'_> {
    /// The logits of the request `index`, `[rows, vocab_size]`: no row, one, or one per token, as was wanted.
    ///
    /// # Errors
    /// `NonFinite` where one of them is NaN or infinite; other requests are not touched by it. `InvalidArgument` where there
    /// is no such request.
    pub fn of(&self, index: usize) -> Result<&[f32]> {
        if index >= self.rows.len() {
            bail!(InvalidArgument, "no request {index} in a step of {}", self.rows.len());
        }
        let logits = &self.values[self.range(index)];
        if let Some(at) = logits.iter().position(|l| !l.is_finite()) {
            bail!(
                NonFinite,
                "request {index}: the logit of token {} is {}; the weights may be damaged, or overflow in their type",
                at % self.vocab_size,
                logits[at]
            );
        }
        Ok(logits)
    }

    fn range(&self, index: usize) -> Range<usize> {
        let rows = &self.rows[index];
        rows.start * self.vocab_size..rows.end * self.vocab_size
    }
}

/// A cache of keys and values with the memory to run a model in. One step at a time.
#[derive(Debug)]
pub struct DecodeSession {
    run: RunContext,
    pages: PageTable,
    limits: DecoderLimits,
    shape: DecoderShape,
}

impl DecodeSession {
    pub(super) fn new(
        session: &Session,
        limits: DecoderLimits,
        shape: DecoderShape,
        tokens: usize,
    ) -> Result<Self> {
        let pages = tokens.div_ceil(limits.page_len).max(1);
        if pages > i32::MAX as usize / limits.page_len {
            bail!(InvalidArgument, "a cache of {tokens} tokens is too large");
        }
        let run = session.context(&[("P", pages)])?;
        Ok(Self { run, pages: PageTable::new(pages, limits.page_len), limits, shape })
    }

    /// The largest sizes of a step.
    pub fn limits(&self) -> &DecoderLimits {
        &self.limits
    }

    /// Tokens that still fit into the cache.
    pub fn free_tokens(&self) -> usize {
        self.pages.free_tokens()
    }

    /// The memory of this session.
    pub fn memory(&self) -> MemoryUse {
        self.run.memory()
    }

    /// Runs the new tokens of all requests, and adds them to their sequences.
    ///
    /// # Errors
    /// `InvalidArgument` where a request has no token, its sequence lives in another session, an id is beyond the vocabulary, or
    /// the step is larger than [`limits`](Self::limits); `ContextExceeded` where a sequence or the cache has no room; errors of the device. After an
    /// error all sequences are as before.
    pub fn step(&mut self, requests: &mut [Request<'_>]) -> Result<StepLogits<'_>> {
        let rows = self.check(requests)?;
        let before: Vec<usize> = requests.iter().map(|r| r.sequence.len()).collect();
        let done = self.append(requests).and_then(|slots| self.run_step(requests, &slots, &rows.wanted));
        if let Err(e) = done {
            for (request, len) in requests.iter_mut().zip(before) {
                self.pages.truncate(request.sequence, len)?;
            }
            return Err(e);
        }
        let values = self.run.output::<f32>(0)?;
        Ok(StepLogits { values, vocab_size: self.shape.vocab_size, rows: rows.ranges })
    }

    /// Runs one request, and gives its logits, `[rows, vocab_size]`.
    ///
    /// # Errors
    /// As [`step`](Self::step); `NonFinite` where a logit is NaN or infinite: end the sequence with [`discard`](Self::discard)
    /// then.
    pub fn step_one(&mut self, mut request: Request<'_>) -> Result<&[f32]> {
        let after = request.sequence.len() + request.tokens.len();
        let step = self.step(std::slice::from_mut(&mut request))?;
        let (values, range) = (step.values, step.range(0));
        step.of(0).map_err(|e| e.context(format!("after {after} tokens")))?;
        Ok(&values[range])
    }

    /// Shortens `sequence` to `len` tokens.
    ///
    /// # Errors
    /// `InvalidArgument` where the sequence lives in another session.
    pub fn truncate(&mut self, sequence: &mut Sequence, len: usize) -> Result<()> {
        Ok(self.pages.truncate(sequence, len)?)
    }

    /// Ends a sequence that holds values which are not finite: its pages are zeroed before others get them.
    ///
    /// # Errors
    /// `InvalidArgument` where the sequence lives in another session; errors of the device.
    pub fn discard(&mut self, sequence: &mut Sequence) -> Result<()> {
        self.pages.check(sequence)?;
        let size = self.limits.kv_dtype.row_bytes(self.shape.num_kv_heads * self.shape.head_dim).unwrap_or(0);
        let page_bytes = size * self.limits.page_len;
        for layer in 0..self.shape.num_layers {
            for kind in ["k", "v"] {
                let memory = self.run.state(&format!("{kind}.{layer}"))?;
                for &page in sequence.pages() {
                    let start = page as usize * page_bytes;
                    if let Some(bytes) = memory.get_mut(start..start + page_bytes) {
                        bytes.fill(0);
                    }
                }
            }
        }
        self.truncate(sequence, 0)
    }

    fn check(&self, requests: &[Request<'_>]) -> Result<Rows> {
        let limits = &self.limits;
        if requests.is_empty() || requests.len() > limits.sequences {
            bail!(InvalidArgument, "{} requests in a step of 1 to {}", requests.len(), limits.sequences);
        }
        let mut rows = Rows { wanted: Vec::new(), ranges: Vec::new() };
        let mut tokens = 0;
        for (index, request) in requests.iter().enumerate() {
            let count = request.tokens.len();
            self.pages.check(request.sequence).map_err(|e| e.context(format!("request {index}")))?;
            if count == 0 {
                bail!(InvalidArgument, "request {index} has no token");
            }
            if let Some(id) = request.tokens.iter().find(|id| **id as usize >= self.shape.vocab_size) {
                bail!(
                    InvalidArgument,
                    "request {index}: token {id} is beyond the vocabulary of {}",
                    self.shape.vocab_size
                );
            }
            if request.sequence.len() + count > limits.context {
                bail!(
                    ContextExceeded,
                    "request {index}: {} tokens and {count} more exceed the context of {}",
                    request.sequence.len(),
                    limits.context
                );
            }
            let first = rows.wanted.len();
            rows.wanted.extend(match request.logits {
                Wanted::None => tokens..tokens,
                Wanted::Last => tokens + count - 1..tokens + count,
                Wanted::All => tokens..tokens + count,
            });
            rows.ranges.push(first..rows.wanted.len());
            tokens += count;
        }
        if tokens > limits.tokens || rows.wanted.len() > limits.rows {
            bail!(
                InvalidArgument,
                "a step of {tokens} tokens and {} rows of logits; at most {} and {} go",
                rows.wanted.len(),
                limits.tokens,
                limits.rows
            );
        }
        if rows.wanted.is_empty() {
            // The graph gives one row at least; nobody reads it.
            rows.wanted.push(tokens - 1);
        }
        Ok(rows)
    }

    fn append(&mut self, requests: &mut [Request<'_>]) -> Result<Vec<i32>> {
        let mut slots = Vec::new();
        for request in requests {
            slots.extend(self.pages.append(request.sequence, request.tokens.len())?);
        }
        Ok(slots)
    }

    fn run_step(&mut self, requests: &[Request<'_>], slots: &[i32], rows: &[usize]) -> Result<()> {
        let width = requests.iter().map(|r| r.sequence.pages().len()).max().unwrap_or(1);
        let run = &mut self.run;
        run.bind(&[("N", slots.len()), ("R", requests.len()), ("T", width), ("L", rows.len())])?;
        run.set("slots", slots)?;
        fill(run.input("rows")?, rows.iter().map(|&row| row as i32));
        fill(run.input("ids")?, requests.iter().flat_map(|r| r.tokens).map(|&id| id as i32));
        let positions = requests.iter().flat_map(|r| r.sequence.len() - r.tokens.len()..r.sequence.len());
        fill(run.input("positions")?, positions.map(|p| p as i32));
        fill(run.input("lengths")?, requests.iter().map(|r| r.sequence.len() as i32));
        let ends = requests.iter().scan(0, |end, r| {
            *end += r.tokens.len() as i32;
            Some(*end)
        });
        fill(run.input("starts")?, std::iter::once(0).chain(ends));
        let table = run.input::<i32>("table")?;
        for (row, request) in table.chunks_exact_mut(width).zip(requests) {
            let pages = request.sequence.pages().iter().map(|&p| p as i32);
            fill(row, pages.chain(std::iter::repeat(0)));
        }
        Ok(run.run()?)
    }
}

/// Which tokens of a step have their logits computed, and which of these rows belong to which request.
struct Rows {
    wanted: Vec<usize>,
    ranges: Vec<Range<usize>>,
}

fn fill(memory: &mut [i32], values: impl Iterator<Item = i32>) {
    for (slot, value) in memory.iter_mut().zip(values) {
        *slot = value;
    }
}
