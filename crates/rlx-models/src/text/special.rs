//! Cutting out the tokens that a text may hold by name, before the rest is tokenized.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use rlx_ir::bail;

use super::{GgufVocab, TokenType};
use crate::{Error, Result};

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fragment<'t> {
    /// Still to be tokenized.
    Text(&'t str),
    /// A token that the text named.
    Token(u32),
}

struct Named {
    text: String,
    id: u32,
    /// Cut out only where special tokens are parsed.
    control: bool,
    /// Takes the white space before it, or after it, along.
    lstrip: bool,
    rstrip: bool,
}

/// Finds control and user-defined tokens in a text. Longer tokens go first, each from left to right.
pub(super) struct SpecialSplitter {
    /// Longest first.
    tokens: Vec<Named>,
    /// Which of them occur at all, in one pass over the text.
    finder: Option<AhoCorasick>,
}

impl SpecialSplitter {
    pub(super) fn new(vocab: &GgufVocab) -> Result<Self> {
        let mut tokens = Vec::new();
        for (id, text) in (0u32..).zip(vocab.tokens.iter()) {
            let control = match vocab.token_type(id) {
                TokenType::Control | TokenType::Unknown => true,
                TokenType::UserDefined => false,
                _ => continue,
            };
            if let Ok(text) = std::str::from_utf8(text)
                && !text.is_empty()
            {
                let (lstrip, rstrip) = (vocab.lstrip.contains(&id), vocab.rstrip.contains(&id));
                tokens.push(Named { text: text.to_owned(), id, control, lstrip, rstrip });
            }
        }
        tokens.sort_by_key(|t| std::cmp::Reverse(t.text.len()));
        let finder = if tokens.is_empty() {
            None
        } else {
            let built = AhoCorasick::builder()
                .match_kind(MatchKind::Standard)
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .build(tokens.iter().map(|t| t.text.as_bytes()));
            match built {
                Ok(finder) => Some(finder),
                Err(e) => bail!(InvalidFile, "tokenizer.ggml.tokens: the special tokens are too large: {e}"),
            }
        };
        Ok(Self { tokens, finder })
    }

    /// Cuts `text` into fragments, none of them empty. User-defined tokens are always cut out, control tokens
    /// only with `parse_special`.
    pub(super) fn split<'t>(&self, text: &'t str, parse_special: bool) -> Vec<Fragment<'t>> {
        let mut fragments = Vec::new();
        if !text.is_empty() {
            fragments.push(Fragment::Text(text));
        }
        let Some(finder) = &self.finder else { return fragments };
        let mut present = vec![false; self.tokens.len()];
        for found in finder.find_overlapping_iter(text) {
            present[found.pattern().as_usize()] = true;
        }
        for (token, _) in
            self.tokens.iter().zip(present).filter(|&(t, here)| here && (parse_special || !t.control))
        {
            let mut next = Vec::with_capacity(fragments.len() + 2);
            for fragment in fragments {
                let Fragment::Text(text) = fragment else {
                    next.push(fragment);
                    continue;
                };
                let mut rest = text;
                while let Some((before, after)) = rest.split_once(&token.text) {
                    let before = if token.lstrip { before.trim_end_matches(is_space) } else { before };
                    if !before.is_empty() {
                        next.push(Fragment::Text(before));
                    }
                    next.push(Fragment::Token(token.id));
                    rest = if token.rstrip { after.trim_start_matches(is_space) } else { after };
                }
                if !rest.is_empty() {
                    next.push(Fragment::Text(rest));
                }
            }
            fragments = next;
        }
        fragments
    }
}

/// White space that goes with a token: that of ASCII.
fn is_space(c: char) -> bool {
    matches!(c, '\t'..='\r' | ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocab() -> GgufVocab {
        GgufVocab {
            tokens: ["a", "<s>", "  ", "   ", "<s><s>"].into_iter().collect(),
            token_types: vec![
                TokenType::Normal,
                TokenType::Control,
                TokenType::UserDefined,
                TokenType::UserDefined,
                TokenType::Control,
            ],
            ..GgufVocab::default()
        }
    }

    fn splitter() -> SpecialSplitter {
        SpecialSplitter::new(&vocab()).unwrap()
    }

    #[test]
    fn longer_tokens_go_first() {
        use Fragment::{Text, Token};
        assert_eq!(
            splitter().split("<s><s><s>a     ", true),
            [Token(4), Token(1), Text("a"), Token(3), Token(2)]
        );
    }

    #[test]
    fn control_tokens_are_text_unless_asked_for() {
        use Fragment::{Text, Token};
        assert_eq!(splitter().split("a<s>   b", false), [Text("a<s>"), Token(3), Text("b")]);
    }

    #[test]
    fn white_space_goes_with_tokens_that_take_it() {
        use Fragment::{Text, Token};
        let split =
            |vocab: GgufVocab, text: &'static str| SpecialSplitter::new(&vocab).unwrap().split(text, true);
        let left = GgufVocab { lstrip: vec![1], ..vocab() };
        assert_eq!(split(left, "a \t<s> b"), [Text("a"), Token(1), Text(" b")]);
        let right = GgufVocab { rstrip: vec![1], ..vocab() };
        assert_eq!(
            split(right, "a <s> \n<s>\u{a0}b<s>\n"),
            [Text("a "), Token(1), Token(1), Text("\u{a0}b"), Token(1)]
        );
    }

    #[test]
    fn an_empty_text_has_no_fragment() {
        assert!(splitter().split("", true).is_empty());
    }
}
