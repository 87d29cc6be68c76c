//! Cutting a text into words by regular expressions.

use rlx_ir::bail;

use crate::{Error, Result};

/// What becomes of a match besides being a word.
///
/// Published patterns end in `\s+(?!\S)|\s+`: a run of white space before a word leaves its last character to the word.
/// Others look ahead to group digits. That is done here, so that an engine without look-ahead, and without backtracking,
/// can do the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// The pattern has no such rule.
    Whole,
    /// It stands apart from a run that something follows.
    LeaveLast,
    /// The same, but runs that end in a line break (an earlier alternative) stay whole.
    LeaveLastUnlessBreak,
    /// The same, and a run is cut into the powers of two up to 512 that fit, largest first.
    PowersOfTwo,
    /// A match is cut into three characters each, counted from its end.
    Threes,
    /// The same, but where a match begins or ends is no border.
    ThreesWithin,
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
    let (mut at, mut searched) = (0, 0);
    while let Some(found) = regex.find_at(text, searched) {
        let end = end_of(text, found.start(), found.end(), *run);
        if end == found.start() {
            break; // An empty match: no pattern here has one.
        }
        let grouped = matches!(run, Run::Threes | Run::ThreesWithin);
        if *run != Run::ThreesWithin {
            split(later, &text[at..found.start()], word)?;
            at = found.start();
        }
        if grouped {
            for border in threes(found.as_str()).map(|b| found.start() + b) {
                if border > at {
                    split(later, &text[at..border], word)?;
                    at = border;
                }
            }
        }
        if *run != Run::ThreesWithin {
            split(later, &text[at..end], word)?;
            at = end;
        }
        searched = end;
    }
    split(later, &text[at..], word)
}

/// Where groups of three characters, counted from the end, begin.
fn threes(digits: &str) -> impl Iterator<Item = usize> {
    let skip = digits.chars().count() % 3;
    digits.char_indices().map(|(at, _)| at).skip(skip).step_by(3)
}

/// Where a match ends after the rule for runs of white space.
fn end_of(text: &str, start: usize, end: usize, run: Run) -> usize {
    let found = &text[start..end];
    let last = match run {
        Run::Whole | Run::Threes | Run::ThreesWithin => return end,
        Run::LeaveLast | Run::LeaveLastUnlessBreak | Run::PowersOfTwo => found.char_indices().next_back(),
    };
    let Some((last_at, last)) = last else { return end };
    let ends_in_break = run != Run::LeaveLast && matches!(last, '\r' | '\n');
    if last_at == 0 || ends_in_break || !found.chars().all(char::is_whitespace) {
        return end;
    }
    let rest = if end == text.len() { found } else { &found[..last_at] };
    if run != Run::PowersOfTwo {
        return start + rest.len();
    }
    let chars = rest.chars().count().min(512);
    let cut = 1 << chars.ilog2();
    start + rest.char_indices().nth(cut).map_or(rest.len(), |(at, _)| at)
}
