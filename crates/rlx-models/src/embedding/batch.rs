//! Which texts are run together.

use std::ops::Range;

/// Splits sequences, whose lengths come in the order that they are run in, into batches within a budget. A sequence that
/// is longer than the budget has a batch of its own.
pub(super) fn batches(lengths: &[usize], max_tokens: usize, max_sequences: usize) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut start, mut tokens) = (0, 0);
    for (i, &len) in lengths.iter().enumerate() {
        if i > start && (tokens + len > max_tokens || i - start >= max_sequences) {
            out.push(start..i);
            (start, tokens) = (i, 0);
        }
        tokens += len;
    }
    if start < lengths.len() {
        out.push(start..lengths.len());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_both_budgets() {
        assert!(batches(&[], 8, 4).is_empty());
        assert_eq!(batches(&[3, 3, 3, 9, 1], 8, 4), [0..2, 2..3, 3..4, 4..5]);
        assert_eq!(batches(&[1; 5], 8, 2), [0..2, 2..4, 4..5]);
    }
}
