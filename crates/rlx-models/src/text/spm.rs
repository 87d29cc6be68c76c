//! Sentencepiece BPE (`tokenizer.ggml.model` = `llama`): merges by score over the whole text, bytes for what is in
//! no piece.

use std::collections::HashMap;

use rlx_ir::bail;

use super::charsmap::Charsmap;
use super::merge::{Merger, NONE};
use super::token_list::TokenIndex;
use super::{GgufVocab, TokenType};
use crate::{Error, Result};

/// Stands for a space within pieces.
pub(super) const SPACE: &str = "\u{2581}";

pub(super) struct Spm {
    pieces: TokenIndex,
    byte_ids: [u32; 256],
    space_prefix: bool,
    remove_extra_whitespaces: bool,
    charsmap: Option<Charsmap>,
    has_unused: bool,
}

impl Spm {
    /// `InvalidFile` if scores are missing or a byte token is misspelt.
    pub(super) fn new(vocab: &GgufVocab) -> Result<Self> {
        if vocab.scores.len() != vocab.tokens.len() {
            bail!(
                InvalidFile,
                "tokenizer.ggml.scores: {} scores for {} tokens, and a llama vocabulary needs one each",
                vocab.scores.len(),
                vocab.tokens.len()
            );
        }
        let pieces = TokenIndex::new(&vocab.tokens, |id| {
            matches!(vocab.token_type(id), TokenType::Normal | TokenType::UserDefined | TokenType::Unused)
        });
        Ok(Self {
            pieces,
            byte_ids: byte_ids(vocab)?,
            space_prefix: vocab.add_space_prefix.unwrap_or(true),
            remove_extra_whitespaces: vocab.remove_extra_whitespaces.unwrap_or(false),
            charsmap: Charsmap::of(vocab)?,
            has_unused: vocab.token_types.contains(&TokenType::Unused),
        })
    }

    /// Whether texts get a space in front, which decoding takes away.
    pub(super) fn space_prefix(&self) -> bool {
        self.space_prefix
    }

    /// Appends the tokens of `text`, which holds no special tokens. `after_special`: it is the first, or follows a
    /// token that was cut out.
    pub(super) fn encode(
        &self,
        vocab: &GgufVocab,
        text: &str,
        after_special: bool,
        merger: &mut Merger,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let text = self.normalize(text, after_special);
        merger.clear();
        for (at, c) in text.char_indices() {
            let len = c.len_utf8();
            let id = self.pieces.find(&vocab.tokens, &text.as_bytes()[at..at + len]);
            merger.push(at, len, id.unwrap_or(NONE));
        }
        // Pieces that must not be used are merged through all the same, then taken apart again.
        let mut parts: HashMap<&str, usize> = HashMap::new();
        merger.run(|left, right| {
            let start = left.start as usize;
            let both = &text[start..start + (left.len + right.len) as usize];
            let id = self.pieces.find(&vocab.tokens, both.as_bytes())?;
            if self.has_unused && vocab.token_type(id) == TokenType::Unused {
                parts.insert(both, left.len as usize);
            }
            Some((priority(vocab.scores[id as usize]), id))
        });
        let mut unknown_before = false;
        for piece in merger.pieces() {
            let start = piece.start as usize;
            let piece_text = &text[start..start + piece.len as usize];
            if parts.is_empty() {
                self.push(vocab, piece_text, piece.id, &mut unknown_before, ids)?;
                continue;
            }
            let mut stack = vec![piece_text];
            while let Some(part) = stack.pop() {
                let id = self.pieces.find(&vocab.tokens, part.as_bytes()).unwrap_or(NONE);
                match parts.get(part) {
                    Some(&left) if vocab.token_type(id) == TokenType::Unused => {
                        stack.push(&part[left..]);
                        stack.push(&part[..left]);
                    }
                    _ => self.push(vocab, part, id, &mut unknown_before, ids)?,
                }
            }
        }
        Ok(())
    }

    /// Appends token `id`, or where there is none the bytes of `text`, or the unknown token once per run.
    fn push(
        &self,
        vocab: &GgufVocab,
        text: &str,
        id: u32,
        unknown_before: &mut bool,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let was_unknown = std::mem::take(unknown_before);
        if id != NONE {
            ids.push(id);
            return Ok(());
        }
        if text.bytes().all(|b| self.byte_ids[usize::from(b)] != NONE) {
            ids.extend(text.bytes().map(|b| self.byte_ids[usize::from(b)]));
            return Ok(());
        }
        let Some(unk) = vocab.unk else {
            bail!(
                InvalidFile,
                "tokenizer.ggml.tokens: no token for {text:?}, no byte tokens and no unknown token, so this text has no \
                 tokens"
            );
        };
        if !was_unknown {
            ids.push(unk);
        }
        *unknown_before = true;
        Ok(())
    }

    fn normalize(&self, text: &str, after_special: bool) -> String {
        let mapped = self.charsmap.as_ref().map(|m| m.apply(text));
        let text = mapped.as_deref().unwrap_or(text);
        let mut out = String::with_capacity(text.len() + text.len() / 2 + SPACE.len());
        if self.remove_extra_whitespaces {
            for word in text.split(' ').filter(|w| !w.is_empty()) {
                if !out.is_empty() || (self.space_prefix && after_special) {
                    out.push_str(SPACE);
                }
                out.push_str(word);
            }
            return out;
        }
        if self.space_prefix && after_special {
            out.push_str(SPACE);
        }
        for c in text.chars() {
            if c == ' ' {
                out.push_str(SPACE);
            } else {
                out.push(c);
            }
        }
        out
    }
}

/// The token of each byte, or [`NONE`]. `InvalidFile` if a byte token is misspelt.
pub(super) fn byte_ids(vocab: &GgufVocab) -> Result<[u32; 256]> {
    let mut byte_ids = [NONE; 256];
    for (id, token) in (0u32..).zip(vocab.tokens.iter()) {
        if vocab.token_type(id) == TokenType::Byte {
            match byte_of(token) {
                Some(byte) => byte_ids[usize::from(byte)] = id,
                None => bail!(
                    InvalidFile,
                    "tokenizer.ggml.tokens[{id}]: \"{}\" is a byte token, but not of the form <0xAB>",
                    String::from_utf8_lossy(token)
                ),
            }
        }
    }
    Ok(byte_ids)
}

/// The byte of `<0xAB>`.
pub(super) fn byte_of(token: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = token else { return None };
    let digit = |d: u8| char::from(d).to_digit(16);
    Some((digit(*high)? * 16 + digit(*low)?) as u8)
}

/// A number that is the lower, the higher the score.
fn priority(score: f32) -> u32 {
    let bits = score.to_bits();
    let ascending = if bits >> 31 == 0 { bits | 0x8000_0000 } else { !bits };
    !ascending
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_scores_go_first() {
        let scores = [f32::INFINITY, 3.5, 0.0, -0.5, -1.0, -1e10];
        assert!(scores.windows(2).all(|w| priority(w[0]) < priority(w[1])));
    }

    #[test]
    fn byte_tokens_are_read_strictly() {
        assert_eq!(byte_of(b"<0x0A>"), Some(10));
        assert_eq!(byte_of(b"<0xfF>"), Some(255));
        assert_eq!(byte_of(b"<0xG0>"), None);
        assert_eq!(byte_of(b"<0x0A> "), None);
    }
}
