//! Stop strings, matched across the borders of tokens.

use rlx_ir::bail;

use crate::{Error, Result};

/// Watches a stream of text for stop strings; holds back what may be the start of one.
///
/// The match that is complete first wins, and of those complete at the same place the longest, however the stream
/// was cut into pieces.
///
/// ```
/// use rlx_models::text::StopMatcher;
///
/// let mut stop = StopMatcher::new(["\n\n"])?;
/// assert_eq!(stop.push("one\n"), ("one".to_owned(), false));
/// assert_eq!(stop.push("two\n"), ("\ntwo".to_owned(), false));
/// assert_eq!(stop.push("\nthree"), (String::new(), true));
/// # Ok::<(), rlx_models::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopMatcher {
    stops: Vec<String>,
    held: String,
    stopped: bool,
}

impl StopMatcher {
    /// A matcher of these strings; none is fine.
    ///
    /// # Errors
    /// `InvalidArgument` if one of them is empty.
    pub fn new<S: Into<String>>(stops: impl IntoIterator<Item = S>) -> Result<Self> {
        let stops: Vec<String> = stops.into_iter().map(Into::into).collect();
        if let Some(at) = stops.iter().position(String::is_empty) {
            bail!(InvalidArgument, "stop string {at} is empty, and would end every text at once");
        }
        Ok(Self { stops, ..Self::default() })
    }

    /// Takes the next piece of text. Returns the text that is certain to come before any stop string, and whether
    /// one was found. After that everything is dropped.
    pub fn push(&mut self, piece: &str) -> (String, bool) {
        if self.stopped {
            return (String::new(), true);
        }
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        let first = self
            .stops
            .iter()
            .filter_map(|stop| text.find(stop.as_str()).map(|start| (start + stop.len(), start)))
            .min();
        if let Some((_, start)) = first {
            self.stopped = true;
            text.truncate(start);
            return (text, true);
        }
        let keep = self.stops.iter().map(|stop| overlap(&text, stop)).max().unwrap_or(0);
        self.held = text.split_off(text.len() - keep);
        (text, false)
    }

    /// Ends the stream: what was held back after all is text.
    pub fn finish(self) -> String {
        self.held
    }

    /// What is held back now.
    pub fn held(&self) -> &str {
        &self.held
    }
}

/// The length of the longest end of `text` that is a start of `stop`, but not all of it.
fn overlap(text: &str, stop: &str) -> usize {
    let longest = text.len().min(stop.len() - 1);
    (1..=longest).rev().find(|&n| stop.is_char_boundary(n) && text.ends_with(&stop[..n])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rlx_ir::ErrorKind;

    use super::*;

    /// Pushes `pieces`; the text that came out, what was held at the end, and whether it stopped.
    fn run(stops: &[String], pieces: &[String]) -> (String, String, bool) {
        let mut matcher = StopMatcher::new(stops.iter().cloned()).unwrap();
        let mut out = String::new();
        for piece in pieces {
            let (text, stopped) = matcher.push(piece);
            out += &text;
            if stopped {
                return (out, String::new(), true);
            }
        }
        (out, matcher.finish(), false)
    }

    #[test]
    fn a_stop_string_is_found_across_pieces() {
        let pieces = ["a<", "/", "s", ">b"].map(String::from);
        assert_eq!(run(&["</s>".into()], &pieces), ("a".into(), String::new(), true));
    }

    #[test]
    fn a_false_start_comes_out_again() {
        let pieces = ["aaa", "b", "aa"].map(String::from);
        assert_eq!(run(&["aac".into()], &pieces), ("aaab".into(), "aa".into(), false));
    }

    #[test]
    fn an_empty_stop_string_is_refused() {
        let e = StopMatcher::new(["x", ""]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert!(e.to_string().contains("stop string 1"), "{e}");
    }

    #[test]
    fn without_stop_strings_nothing_is_held() {
        assert_eq!(run(&[], &["ab".into()]), ("ab".into(), String::new(), false));
    }

    proptest! {
        #[test]
        fn the_cut_into_pieces_does_not_matter(
            stops in proptest::collection::vec("[abé]{1,4}", 0..4),
            pieces in proptest::collection::vec("[abcé]{0,3}", 0..12),
        ) {
            let whole = pieces.concat();
            let letters: Vec<String> = whole.chars().map(String::from).collect();
            let by_piece = run(&stops, &pieces);
            prop_assert_eq!(&by_piece, &run(&stops, &letters));
            prop_assert_eq!(&by_piece, &run(&stops, std::slice::from_ref(&whole)));
            if by_piece.2 {
                prop_assert!(whole.starts_with(&by_piece.0));
                prop_assert!(stops.iter().any(|s| whole[by_piece.0.len()..].starts_with(s.as_str())));
            } else {
                prop_assert_eq!(by_piece.0 + &by_piece.1, whole.clone());
                prop_assert!(stops.iter().all(|s| !whole.contains(s.as_str())));
            }
        }
    }
}
