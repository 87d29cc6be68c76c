//! The cache of one sequence, with the tokens that are in it.

use rlx_runtime::pages::Sequence;

use super::session::{DecodeSession, Request, Wanted};
use crate::Result;

/// Keys and values of a sequence.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) session: DecodeSession,
    sequence: Sequence,
    ids: Vec<u32>,
}

impl Cache {
    /// A cache without tokens in a session that holds no other sequence.
    pub(super) fn new(session: DecodeSession) -> Self {
        Self { session, sequence: Sequence::default(), ids: Vec::new() }
    }

    /// How many tokens are in it.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Keeps the tokens that `prompt` begins with, and drops the rest. The last token of the prompt is never kept: its
    /// logits are wanted.
    pub(super) fn keep_prefix(&mut self, prompt: &[u32]) -> Result<()> {
        let most = prompt.len().saturating_sub(1);
        let common = self.ids.iter().zip(&prompt[..most]).take_while(|(a, b)| a == b).count();
        self.truncate(common)
    }

    /// Runs new tokens, and gives their logits.
    pub(super) fn step(&mut self, tokens: &[u32], logits: Wanted) -> Result<&[f32]> {
        let request = Request { sequence: &mut self.sequence, tokens, logits };
        // The tokens are in the sequence also where the logits are no numbers.
        let before = request.sequence.len();
        let done = self.session.step_one(request);
        if done.is_ok() || before < self.sequence.len() {
            self.ids.extend_from_slice(tokens);
        }
        done
    }

    /// Drops all tokens, with what they left behind, after an error.
    pub(super) fn discard(&mut self) -> Result<()> {
        self.ids.clear();
        self.session.discard(&mut self.sequence)
    }

    /// Drops all tokens.
    pub(super) fn clear(&mut self) -> Result<()> {
        self.truncate(0)
    }

    fn truncate(&mut self, len: usize) -> Result<()> {
        self.ids.truncate(len);
        self.session.truncate(&mut self.sequence, len)
    }
}
