//! Cutting a text into words by regular expressions.

use rlx_ir::bail;

use crate::{Error, Result};

/// What becomes of the last character of a run of white space.
///
/// Published patterns end in `\s+(?!\S)|\s+`: a run before a word leaves its last character to the word. That
/// look-ahead is done here, so that an engine without it, and without backtracking, can do the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// The pattern has no such rule.
    Whole,
    /// It stands apart from a run that something follows.
    LeaveLast,
    /// The same, but runs that end in a line break (an earlier alternative) stay whole.
    LeaveLastUnlessBreak,
}

/// One stage of a pre-tokenizer: each piece so far is cut into the matches of `pattern` and what lies between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    pub(super) pattern: &'static str,
    pub(super) run: Run,
}

/// Stages, compiled.
pub(super) struct Splitter {
    stages: Vec<(regex::Regex, Run)>,
}

impl Splitter {
    pub(super) fn new(stages: &[Stage]) -> Result<Self> {
        let mut compiled = Vec::with_capacity(stages.len());
        for stage in stages {
            match regex::Regex::new(stage.pattern) {
                Ok(regex) => compiled.push((regex, stage.run)),
                Err(e) => bail!(Bug, "pre-tokenizer pattern {}: {e}", stage.pattern),
            }
        }
        Ok(Self { stages: compiled })
    }

    /// Hands the words of `text` to `word`, in order; together they are `text`.
    pub(super) fn split<'t, E>(
        &self,
        text: &'t str,
        word: &mut impl FnMut(&'t str) -> Result<(), E>,
    ) -> Result<(), E> {
        split(&self.stages, text, word)
    }
}

fn split<'t, E>(
    stages: &[(regex::Regex, Run)],
    text: &'t str,
    word: &mut impl FnMut(&'t str) -> Result<(), E>,
) -> Result<(), E> {
    let Some(((regex, run), later)) = stages.split_first() else {
        return if text.is_empty() { Ok(()) } else { word(text) };
    };
    let mut at = 0;
    while let Some(found) = regex.find_at(text, at) {
        let end = end_of(text, found.start(), found.end(), *run);
        if end == found.start() {
            break; // An empty match: no pattern here has one.
        }
        split(later, &text[at..found.start()], word)?;
        split(later, &text[found.start()..end], word)?;
        at = end;
    }
    split(later, &text[at..], word)
}

/// Where a match ends after the rule for runs of white space.
fn end_of(text: &str, start: usize, end: usize, run: Run) -> usize {
    if run == Run::Whole || end == text.len() {
        return end;
    }
    let found = &text[start..end];
    let Some((last_at, last)) = found.char_indices().next_back() else { return end };
    let whole = last_at == 0
        || !last.is_whitespace()
        || (run == Run::LeaveLastUnlessBreak && matches!(last, '\r' | '\n'))
        || !found.chars().all(char::is_whitespace);
    if whole { end } else { start + last_at }
}
