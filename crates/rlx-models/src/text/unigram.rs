//! Sentencepiece's unigram model (`tokenizer.ggml.model` = `t5`, which XLM-RoBERTa has too): the way through the text
//! whose pieces have the highest sum of scores.
//!
//! Kudo, "Subword Regularization: Improving Neural Network Translation Models with Multiple Subword Candidates", 2018.

use rlx_ir::bail;

use super::charsmap::Charsmap;
use super::merge::NONE;
use super::piece_trie::PieceTrie;
use super::spm::{self, SPACE};
use super::{GgufVocab, TokenType};
use crate::{Error, Result};

/// How far an unknown character is below the worst piece.
const UNKNOWN_PENALTY: f64 = 10.0;

pub(super) struct Unigram {
    pieces: PieceTrie,
    byte_ids: [u32; 256],
    unk: u32,
    unknown_score: f64,
    space_prefix: bool,
    remove_extra_whitespaces: bool,
    charsmap: Option<Charsmap>,
}

/// The best way to the end of a character.
#[derive(Clone, Copy)]
struct Best {
    score: f64,
    /// Where its last piece starts.
    start: usize,
    id: u32,
}

impl Unigram {
    /// `InvalidFile` if scores or the unknown token are missing, a score is no number, or a byte token is misspelt.
    pub(super) fn new(vocab: &GgufVocab) -> Result<Self> {
        let Some(unk) = vocab.unk else {
            bail!(InvalidFile, "tokenizer.ggml.unknown_token_id: missing, and a t5 vocabulary needs it");
        };
        if vocab.scores.len() != vocab.tokens.len() {
            bail!(
                InvalidFile,
                "tokenizer.ggml.scores: {} scores for {} tokens, and a t5 vocabulary needs one each",
                vocab.scores.len(),
                vocab.tokens.len()
            );
        }
        if let Some(at) = vocab.scores.iter().position(|s| !s.is_finite()) {
            bail!(InvalidFile, "tokenizer.ggml.scores[{at}]: {} is no score", vocab.scores[at]);
        }
        let normal = (0u32..).zip(&vocab.scores).filter(|&(id, _)| vocab.token_type(id) == TokenType::Normal);
        let worst = normal.map(|(_, &score)| f64::from(score)).fold(f64::INFINITY, f64::min);
        let pieces = PieceTrie::new(&vocab.tokens, |id| {
            matches!(vocab.token_type(id), TokenType::Normal | TokenType::UserDefined | TokenType::Unused)
        });
        Ok(Self {
            pieces,
            byte_ids: spm::byte_ids(vocab)?,
            unk,
            unknown_score: if worst.is_finite() { worst } else { 0.0 } - UNKNOWN_PENALTY,
            space_prefix: vocab.add_space_prefix.unwrap_or(true),
            remove_extra_whitespaces: vocab.remove_extra_whitespaces.unwrap_or(false),
            charsmap: Charsmap::of(vocab)?,
        })
    }

    /// Whether texts get a space in front, which decoding takes away.
    pub(super) fn space_prefix(&self) -> bool {
        self.space_prefix
    }

    /// Appends the tokens of `text`, which holds no special tokens.
    pub(super) fn encode(&self, vocab: &GgufVocab, text: &str, ids: &mut Vec<u32>) {
        let text = self.normalize(text);
        let mut best = vec![Best { score: f64::NEG_INFINITY, start: 0, id: NONE }; text.len() + 1];
        best[0].score = 0.0;
        for (at, c) in text.char_indices() {
            let here = best[at].score;
            let alone = at + c.len_utf8();
            let mut offer = |end: usize, id, score: f64| {
                if here + score > best[end].score {
                    best[end] = Best { score: here + score, start: at, id };
                }
            };
            let mut is_piece = false;
            for (len, id) in self.pieces.prefixes(&text[at..]) {
                is_piece |= at + len == alone;
                let user_defined = vocab.token_type(id) == TokenType::UserDefined;
                offer(at + len, id, if user_defined { 0.0 } else { f64::from(vocab.scores[id as usize]) });
            }
            if !is_piece {
                offer(alone, NONE, self.unknown_score);
            }
        }
        let mut pieces = Vec::new();
        let mut end = text.len();
        while end > 0 {
            pieces.push((best[end].start, end, best[end].id));
            end = best[end].start;
        }
        self.push(&text, pieces.into_iter().rev(), ids);
    }

    /// Appends pieces; for what is none the bytes of the text, or the unknown token once per run.
    fn push(&self, text: &str, pieces: impl Iterator<Item = (usize, usize, u32)>, ids: &mut Vec<u32>) {
        let mut unknown_before = false;
        for (start, end, id) in pieces {
            let bytes = &text.as_bytes()[start..end];
            let was_unknown = std::mem::take(&mut unknown_before);
            if id != NONE {
                ids.push(id);
            } else if bytes.iter().all(|&b| self.byte_ids[usize::from(b)] != NONE) {
                ids.extend(bytes.iter().map(|&b| self.byte_ids[usize::from(b)]));
            } else {
                if !was_unknown {
                    ids.push(self.unk);
                }
                unknown_before = true;
            }
        }
    }

    fn normalize(&self, text: &str) -> String {
        let mapped = self.charsmap.as_ref().map(|m| m.apply(text));
        let text = mapped.as_deref().unwrap_or(text);
        let mut out = String::with_capacity(text.len() + text.len() / 2 + SPACE.len());
        if !self.remove_extra_whitespaces {
            if self.space_prefix {
                out.push_str(SPACE);
            }
            out.push_str(&text.replace(' ', SPACE));
            return out;
        }
        for word in text.split(' ').filter(|w| !w.is_empty()) {
            if self.space_prefix || !out.is_empty() {
                out.push_str(SPACE);
            }
            out.push_str(word);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;

    use super::*;

    fn vocab() -> GgufVocab {
        let pieces = [
            ("<unk>", 0.0, 2),
            ("▁", -3.0, 1),
            ("▁a", -1.0, 1),
            ("b", -2.0, 1),
            ("ab", -2.5, 1),
            ("▁ab", -9.0, 1),
        ];
        GgufVocab {
            model: "t5".into(),
            tokens: pieces.iter().map(|p| p.0).collect(),
            scores: pieces.iter().map(|p| p.1).collect(),
            token_types: pieces.iter().map(|p| TokenType::from_gguf(p.2)).collect(),
            unk: Some(0),
            remove_extra_whitespaces: Some(true),
            ..GgufVocab::default()
        }
    }

    fn encode(vocab: &GgufVocab, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        Unigram::new(vocab).unwrap().encode(vocab, text, &mut ids);
        ids
    }

    #[test]
    fn the_highest_sum_wins() {
        assert_eq!(encode(&vocab(), "ab"), [2, 3], "-1 - 2 is above -3 - 2.5 and -9");
        assert_eq!(encode(&vocab(), "  b   ab "), [1, 3, 2, 3]);
        assert!(encode(&vocab(), " ").is_empty());
    }

    #[test]
    fn a_run_of_unknown_characters_is_one_token_or_its_bytes() {
        assert_eq!(encode(&vocab(), "xyb"), [1, 0, 3]);
        let mut with_bytes = vocab();
        for byte in *b"xy" {
            with_bytes.tokens.push(format!("<0x{byte:02X}>").as_bytes());
            with_bytes.scores.push(0.0);
            with_bytes.token_types.push(TokenType::Byte);
        }
        assert_eq!(encode(&with_bytes, "xyb"), [1, 6, 7, 3]);
    }

    #[test]
    fn without_removal_every_space_stays() {
        let vocab = GgufVocab { remove_extra_whitespaces: None, ..vocab() };
        assert_eq!(encode(&vocab, " a  "), [1, 2, 1, 1]);
        let bare = GgufVocab { add_space_prefix: Some(false), ..vocab };
        assert_eq!(encode(&bare, "b a"), [3, 2]);
    }

    #[test]
    fn what_is_missing_is_named() {
        for (vocab, name) in [
            (GgufVocab { unk: None, ..vocab() }, "unknown_token_id"),
            (GgufVocab { scores: vec![], ..vocab() }, "scores: 0 scores"),
            (GgufVocab { scores: vec![0.0, 0.0, f32::NAN, 0.0, 0.0, 0.0], ..vocab() }, "scores[2]"),
        ] {
            let e = Unigram::new(&vocab).err().unwrap();
            assert_eq!(e.kind(), ErrorKind::InvalidFile);
            assert!(e.to_string().contains(name), "{e}");
        }
    }
}
