//! WordPiece (`tokenizer.ggml.model` = `bert`): the longest piece first, word by word.
//!
//! GGUF marks pieces that begin a word with U+2581; `tokenizer.json` marks the others with `##`.

use rlx_ir::bail;

use super::bert_words::BertWords;
use super::token_list::TokenIndex;
use super::{GgufVocab, TokenType};
use crate::{Error, Result};

/// Marks the start of a word within pieces.
const START: &str = "\u{2581}";

/// Words of more characters are unknown as a whole.
const MAX_WORD_CHARS: usize = 100;

pub(super) struct WordPiece {
    words: BertWords,
    pieces: TokenIndex,
    unk: u32,
}

impl WordPiece {
    /// `InvalidFile` if there is no unknown token.
    ///
    /// Where the file does not say whether letters are folded, the vocabulary does: one without a capital among its
    /// ordinary pieces was learned from folded text.
    pub(super) fn new(vocab: &GgufVocab) -> Result<Self> {
        let Some(unk) = vocab.unk else {
            bail!(InvalidFile, "tokenizer.ggml.unknown_token_id: missing, and a bert vocabulary needs it");
        };
        let lowercase = vocab.lowercase.unwrap_or_else(|| !has_capitals(vocab));
        let strip_accents = vocab.strip_accents.unwrap_or(lowercase);
        let pieces = TokenIndex::new(&vocab.tokens, |id| vocab.token_type(id) != TokenType::Control);
        Ok(Self { words: BertWords { lowercase, strip_accents }, pieces, unk })
    }

    /// Whether letters are folded to lower case.
    pub(super) fn lowercase(&self) -> bool {
        self.words.lowercase
    }

    /// Appends the tokens of `text`, which holds no special tokens.
    pub(super) fn encode(&self, vocab: &GgufVocab, text: &str, ids: &mut Vec<u32>) {
        let mut marked = String::from(START);
        self.words.split(text, &mut |word| {
            marked.truncate(START.len());
            marked.push_str(word);
            let first = ids.len();
            if word.chars().count() > MAX_WORD_CHARS || !self.cut(vocab, &marked, ids) {
                ids.truncate(first);
                ids.push(self.unk);
            }
        });
    }

    /// Appends the pieces of a word that has its mark in front; false if some part of it is no piece.
    fn cut(&self, vocab: &GgufVocab, marked: &str, ids: &mut Vec<u32>) -> bool {
        let (mut at, mut least) = (0, START.len() + 1);
        while at < marked.len() {
            // Only the first piece may start with the mark: a mark in the text itself starts no word.
            if at > 0 && marked[at..].starts_with(START) {
                return false;
            }
            let longest = marked.len().min(at + vocab.tokens.longest_bytes());
            let found = (at + least..=longest)
                .rev()
                .filter(|&end| marked.is_char_boundary(end))
                .find_map(|end| Some((end, self.pieces.find(&vocab.tokens, &marked.as_bytes()[at..end])?)));
            let Some((end, id)) = found else { return false };
            ids.push(id);
            (at, least) = (end, 1);
        }
        true
    }
}

/// Whether an ordinary piece holds an ASCII capital. Names in brackets (`[unused7]`, `[UNK]`) do not count.
fn has_capitals(vocab: &GgufVocab) -> bool {
    (0u32..).zip(vocab.tokens.iter()).any(|(id, token)| {
        vocab.token_type(id) == TokenType::Normal
            && !(token.starts_with(b"[") && token.ends_with(b"]"))
            && token.iter().any(u8::is_ascii_uppercase)
    })
}
