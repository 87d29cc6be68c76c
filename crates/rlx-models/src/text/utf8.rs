//! Text out of bytes that come in pieces.

/// Joins bytes into UTF-8: holds back what may be the start of a character, replaces what cannot be one by U+FFFD.
#[derive(Clone, Debug, Default)]
pub(super) struct Utf8Stream {
    held: Vec<u8>,
}

impl Utf8Stream {
    /// Appends to `text` all characters that are complete with `bytes`.
    pub(super) fn push(&mut self, bytes: &[u8], text: &mut String) {
        self.held.extend_from_slice(bytes);
        let mut at = 0;
        let keep = loop {
            let rest = &self.held[at..];
            match std::str::from_utf8(rest) {
                Ok(all) => {
                    text.push_str(all);
                    break self.held.len();
                }
                Err(e) => {
                    let valid = e.valid_up_to();
                    text.push_str(std::str::from_utf8(&rest[..valid]).unwrap_or_default());
                    at += valid;
                    match e.error_len() {
                        Some(bad) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            at += bad;
                        }
                        None => break at,
                    }
                }
            }
        };
        self.held.drain(..keep);
    }

    /// Ends the text: a character that never came to its end becomes U+FFFD.
    pub(super) fn finish(&mut self, text: &mut String) {
        if !self.held.is_empty() {
            self.held.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_give_what_the_whole_gives(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(0xF0), Just(0x9F), Just(0x98), Just(0x80)], 0..40),
            cuts in proptest::collection::vec(1usize..4, 40),
        ) {
            let (mut stream, mut text, mut rest) = (Utf8Stream::default(), String::new(), bytes.as_slice());
            for cut in cuts {
                let (piece, later) = rest.split_at(cut.min(rest.len()));
                stream.push(piece, &mut text);
                rest = later;
            }
            stream.push(rest, &mut text);
            stream.finish(&mut text);
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }
}
