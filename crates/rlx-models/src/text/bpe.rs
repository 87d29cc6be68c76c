//! Byte pair encoding: words by a pre-tokenizer, then merges by rank.
//!
//! `tokenizer.ggml.model` = `gpt2` merges bytes, each spelt as a visible character. `gemma4` merges characters, with spaces
//! as sentencepiece marks them, and has byte tokens for what is no piece.

use std::collections::HashMap;

use rlx_ir::bail;

use super::merge::{Merger, NONE};
use super::pre::PreTokenizer;
use super::spm::{self, SPACE};
use super::token_list::TokenIndex;
use super::{GgufVocab, byte_level};
use crate::{Error, Result};

type Pairs = HashMap<(u32, u32), (u32, u32), ahash::RandomState>;

pub(super) struct Bpe {
    pre: PreTokenizer,
    /// The token of each byte; in a byte-level alphabet also the number of a symbol that is no token, else [`NONE`].
    byte_ids: [u32; 256],
    /// What merges start from where it is not bytes.
    chars: Option<Chars>,
    /// Rank and result of each pair.
    merges: Pairs,
    /// Whole words, where the pre-tokenizer says that they go before the merges.
    words: Option<TokenIndex>,
    /// Ids from here on are symbols that merges name but that are no tokens; they end as bytes.
    num_tokens: u32,
}

/// The symbols of characters.
struct Chars {
    index: TokenIndex,
    /// Characters that merges name but that are no tokens.
    extra: HashMap<Vec<u8>, u32>,
}

impl Bpe {
    /// Builds the merge table. `UnsupportedModel` for an unknown pre-tokenizer, `InvalidFile` for merges that are
    /// no pairs or a vocabulary without any.
    pub(super) fn new(vocab: &GgufVocab) -> Result<Self> {
        // A gemma4 vocabulary has one way to cut words, whatever the file calls it.
        let name = if vocab.model == "gemma4" { "gemma4" } else { vocab.pre.as_deref().unwrap_or("default") };
        let pre = PreTokenizer::by_name(name)?;
        let index = TokenIndex::new(&vocab.tokens, |_| true);
        let num_tokens = vocab.tokens.len() as u32;
        let mut extra: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut symbol = |text: &[u8]| {
            index.find(&vocab.tokens, text).unwrap_or_else(|| {
                let next = num_tokens + extra.len() as u32;
                *extra.entry(text.to_vec()).or_insert(next)
            })
        };
        let mut byte_ids = [NONE; 256];
        let mut utf8 = [0; 4];
        if pre.by_char {
            byte_ids = spm::byte_ids(vocab)?;
        } else {
            for (byte, id) in (0..=255).zip(&mut byte_ids) {
                *id = symbol(byte_level::char_of_byte(byte).encode_utf8(&mut utf8).as_bytes());
            }
        }
        if vocab.merges.is_empty() {
            bail!(
                InvalidFile,
                "tokenizer.ggml.merges: missing or empty, and a {} vocabulary needs them",
                vocab.model
            );
        }
        let mut merges = Pairs::with_capacity_and_hasher(vocab.merges.len(), ahash::RandomState::new());
        let mut merged = Vec::new();
        for (rank, pair) in (0u32..).zip(vocab.merges.iter()) {
            // A part may itself begin with a space, never be empty.
            let Some(space) = pair.iter().skip(1).position(|&b| b == b' ').map(|at| at + 1) else {
                bail!(
                    InvalidFile,
                    "tokenizer.ggml.merges[{rank}]: \"{}\" is no pair with a space between",
                    String::from_utf8_lossy(pair)
                );
            };
            let (left, right) = (&pair[..space], &pair[space + 1..]);
            merged.clear();
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
            let key = (symbol(left), symbol(right));
            let id = symbol(&merged);
            merges.entry(key).or_insert((rank, id));
        }
        let (mut chars, mut words) = (None, None);
        if pre.by_char {
            chars = Some(Chars { index, extra });
        } else if pre.ignore_merges {
            words = Some(index);
        }
        Ok(Self { pre, byte_ids, chars, merges, words, num_tokens })
    }

    pub(super) fn pre(&self) -> &PreTokenizer {
        &self.pre
    }

    /// Appends the tokens of `text`, which holds no special tokens.
    pub(super) fn encode(
        &self,
        vocab: &GgufVocab,
        text: &str,
        merger: &mut Merger,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        if let Some(chars) = &self.chars {
            return self.encode_chars(vocab, chars, &text.replace(' ', SPACE), merger, ids);
        }
        let mut spelled = String::new();
        self.pre.split(text, &mut |word| {
            let bytes = word.as_bytes();
            if let [byte] = bytes {
                return self.push(vocab, self.byte_ids[usize::from(*byte)], bytes, ids);
            }
            if let Some(words) = &self.words {
                spelled.clear();
                byte_level::encode_into(&mut spelled, bytes);
                if let Some(id) = words.find(&vocab.tokens, spelled.as_bytes()) {
                    ids.push(id);
                    return Ok(());
                }
            }
            merger.clear();
            for (at, &byte) in bytes.iter().enumerate() {
                merger.push(at, 1, self.byte_ids[usize::from(byte)]);
            }
            merger.run(|left, right| self.merges.get(&(left.id, right.id)).copied());
            for piece in merger.pieces() {
                let (start, len) = (piece.start as usize, piece.len as usize);
                self.push(vocab, piece.id, &bytes[start..start + len], ids)?;
            }
            Ok(())
        })
    }

    /// The same over characters. Lines are words, and so are runs of line breaks, which need no merges.
    fn encode_chars(
        &self,
        vocab: &GgufVocab,
        chars: &Chars,
        text: &str,
        merger: &mut Merger,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        self.pre.split(text, &mut |word| {
            let bytes = word.as_bytes();
            if (self.pre.ignore_merges || bytes.iter().all(|&b| b == b'\n'))
                && let Some(id) = chars.index.find(&vocab.tokens, bytes)
            {
                ids.push(id);
                return Ok(());
            }
            merger.clear();
            for (at, c) in word.char_indices() {
                let char_bytes = &bytes[at..at + c.len_utf8()];
                let id = chars.index.find(&vocab.tokens, char_bytes);
                let id = id.or_else(|| chars.extra.get(char_bytes).copied());
                merger.push(at, char_bytes.len(), id.unwrap_or(NONE));
            }
            merger.run(|left, right| self.merges.get(&(left.id, right.id)).copied());
            for piece in merger.pieces() {
                let (start, len) = (piece.start as usize, piece.len as usize);
                self.push(vocab, piece.id, &bytes[start..start + len], ids)?;
            }
            Ok(())
        })
    }

    /// Appends token `id`, or the tokens of `bytes` if it is no token.
    fn push(&self, vocab: &GgufVocab, id: u32, bytes: &[u8], ids: &mut Vec<u32>) -> Result<()> {
        if id < self.num_tokens {
            ids.push(id);
            return Ok(());
        }
        for &byte in bytes {
            let id = self.byte_ids[usize::from(byte)];
            match (id < self.num_tokens, vocab.unk) {
                (true, _) => ids.push(id),
                (false, Some(unk)) => ids.push(unk),
                (false, None) => bail!(
                    InvalidFile,
                    "tokenizer.ggml.tokens: no token for the byte {byte:#04x} and no unknown token, so this text has \
                     no tokens"
                ),
            }
        }
        Ok(())
    }
}
