//! Greedy pair merging, as byte pair encoding and sentencepiece's BPE do it: of all adjacent pairs that may be
//! merged, the one of lowest priority value goes first, and of equals the leftmost.
//!
//! A heap and a linked list make it `n log n`, so that a "word" of a megabyte is no trap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// No neighbour, or no token.
pub(crate) const NONE: u32 = u32::MAX;

/// A run of the text that is one piece so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    /// Where it starts in the text, in bytes.
    pub(crate) start: u32,
    /// Its length in bytes; 0 once it was merged into its left neighbour.
    pub(crate) len: u32,
    /// Its token, or [`NONE`].
    pub(crate) id: u32,
    prev: u32,
    next: u32,
}

/// A pair that may be merged; the order is that of merging.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    priority: u32,
    left: u32,
    right: u32,
    /// The length of both together: tells whether one of them has changed since.
    len: u32,
    id: u32,
}

/// The working memory of [`Merger::run`], kept between words.
#[derive(Default)]
pub(crate) struct Merger {
    symbols: Vec<Symbol>,
    heap: BinaryHeap<Reverse<Candidate>>,
}

impl Merger {
    /// Forgets the last word.
    pub(crate) fn clear(&mut self) {
        self.symbols.clear();
        self.heap.clear();
    }

    /// Appends a symbol of `len` bytes that starts at `start`. At most `u32::MAX - 1` symbols.
    pub(crate) fn push(&mut self, start: usize, len: usize, id: u32) {
        let at = self.symbols.len() as u32;
        if let Some(last) = self.symbols.last_mut() {
            last.next = at;
        }
        let prev = at.checked_sub(1).unwrap_or(NONE);
        self.symbols.push(Symbol { start: start as u32, len: len as u32, id, prev, next: NONE });
    }

    /// Merges until nothing can be merged. `find` gives priority (lower goes first) and token of a pair.
    pub(crate) fn run(&mut self, mut find: impl FnMut(&Symbol, &Symbol) -> Option<(u32, u32)>) {
        for right in 1..self.symbols.len() as u32 {
            self.offer(right - 1, right, &mut find);
        }
        while let Some(Reverse(c)) = self.heap.pop() {
            let (left, right) = (self.symbols[c.left as usize], self.symbols[c.right as usize]);
            if left.len == 0 || right.len == 0 || left.len + right.len != c.len {
                continue;
            }
            self.symbols[c.right as usize].len = 0;
            let merged = &mut self.symbols[c.left as usize];
            merged.len = c.len;
            merged.id = c.id;
            merged.next = right.next;
            if right.next != NONE {
                self.symbols[right.next as usize].prev = c.left;
                self.offer(c.left, right.next, &mut find);
            }
            if left.prev != NONE {
                self.offer(left.prev, c.left, &mut find);
            }
        }
    }

    /// What is left, in order.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(|s| s.len != 0)
    }

    fn offer(
        &mut self,
        left: u32,
        right: u32,
        find: &mut impl FnMut(&Symbol, &Symbol) -> Option<(u32, u32)>,
    ) {
        let (l, r) = (&self.symbols[left as usize], &self.symbols[right as usize]);
        if let Some((priority, id)) = find(l, r) {
            let len = l.len + r.len;
            self.heap.push(Reverse(Candidate { priority, left, right, len, id }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merges letter by letter: `pairs` in order of priority.
    fn merge(word: &str, pairs: &[(&str, &str)]) -> Vec<String> {
        let mut merger = Merger::default();
        for i in 0..word.len() {
            merger.push(i, 1, 0);
        }
        let text = |s: &Symbol| word[s.start as usize..(s.start + s.len) as usize].to_owned();
        merger.run(|l, r| {
            let (l, r) = (text(l), text(r));
            pairs.iter().position(|&(a, b)| a == l && b == r).map(|at| (at as u32, 0))
        });
        merger.pieces().map(text).collect()
    }

    #[test]
    fn the_best_pair_goes_first_and_of_equals_the_leftmost() {
        assert_eq!(merge("aaaaa", &[("a", "a")]), ["aa", "aa", "a"]);
        assert_eq!(merge("abc", &[("b", "c"), ("a", "b")]), ["a", "bc"]);
        assert_eq!(merge("abab", &[("a", "b"), ("ab", "ab")]), ["abab"]);
        assert_eq!(merge("", &[("a", "b")]), Vec::<String>::new());
    }

    #[test]
    fn a_pair_whose_half_was_taken_is_dropped() {
        // "b c" is offered at first, but "b" goes to "a b" before its turn comes.
        assert_eq!(merge("abcd", &[("a", "b"), ("b", "c"), ("c", "d")]), ["ab", "cd"]);
    }
}
