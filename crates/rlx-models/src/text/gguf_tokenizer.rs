//! A tokenizer built from the vocabulary of a GGUF file.

use std::borrow::Cow;

use rlx_ir::bail;

use super::bpe::Bpe;
use super::merge::Merger;
use super::special::{Fragment, SpecialSplitter};
use super::spm::{self, Spm};
use super::style::{self, Style};
use super::unigram::Unigram;
use super::wordpiece::WordPiece;
use super::{EncodeOptions, Encoding, GgufVocab, SpecialTokens, TokenType};
use crate::{Error, Result};

enum Model {
    Bpe(Bpe),
    Spm(Spm),
    Unigram(Unigram),
    WordPiece(WordPiece),
}

pub(super) struct GgufTokenizer {
    vocab: GgufVocab,
    splitter: SpecialSplitter,
    model: Model,
    special: SpecialTokens,
    style: Style,
    prefix: Vec<u32>,
    suffix: Vec<u32>,
}

impl GgufTokenizer {
    pub(super) fn new(mut vocab: GgufVocab) -> Result<Self> {
        check(&vocab)?;
        drop_ids_out_of_range(&mut vocab);
        if vocab.unk.is_none() {
            vocab.unk = vocab.token_types.iter().position(|&t| t == TokenType::Unknown).map(|id| id as u32);
        }
        if vocab.model == "t5" {
            let in_vocab = |id: u32| ((id as usize) < vocab.tokens.len()).then_some(id);
            (vocab.unk, vocab.eos) = (vocab.unk.or(in_vocab(2)), vocab.eos.or(in_vocab(1)));
            vocab.add_eos = vocab.add_eos.or(Some(true));
        }
        let splitter = SpecialSplitter::new(&vocab)?;
        let (mut prefix, mut suffix) = (Vec::new(), Vec::new());
        let (model, style) = match vocab.model.as_str() {
            "gpt2" | "gemma4" => {
                let bpe = Bpe::new(&vocab)?;
                let pre = bpe.pre();
                if pre.always_bos || vocab.add_bos.unwrap_or(pre.add_bos) {
                    prefix.push(needed(vocab.bos, "bos_token_id")?);
                }
                let by_char = Style::Sentencepiece { strip_space: false };
                let style = if pre.by_char { by_char } else { Style::ByteLevel };
                (Model::Bpe(bpe), style)
            }
            "llama" => {
                let spm = Spm::new(&vocab)?;
                if vocab.add_bos.unwrap_or(true) {
                    prefix.push(needed(vocab.bos, "bos_token_id")?);
                }
                let strip_space = spm.space_prefix();
                (Model::Spm(spm), Style::Sentencepiece { strip_space })
            }
            "t5" => {
                let unigram = Unigram::new(&vocab)?;
                if vocab.add_bos == Some(true) {
                    prefix.push(needed(vocab.bos, "bos_token_id")?);
                }
                let strip_space = unigram.space_prefix();
                (Model::Unigram(unigram), Style::Sentencepiece { strip_space })
            }
            "bert" => {
                vocab.cls = vocab.cls.or(vocab.bos).or_else(|| id_of(&vocab, "[CLS]"));
                vocab.sep = vocab.sep.or(vocab.eos).or_else(|| id_of(&vocab, "[SEP]"));
                vocab.unk = vocab.unk.or_else(|| id_of(&vocab, "[UNK]"));
                prefix.push(needed(vocab.cls, "cls_token_id")?);
                suffix.push(needed(vocab.sep, "seperator_token_id")?);
                (Model::WordPiece(WordPiece::new(&vocab)?), Style::WordPieceStart)
            }
            other => bail!(
                UnsupportedModel,
                "tokenizer.ggml.model: the tokenizer \"{other}\" is not known; known are gpt2, gemma4, llama, t5, bert"
            ),
        };
        if vocab.model != "bert" && vocab.add_eos == Some(true) {
            suffix.push(needed(vocab.eos, "eos_token_id")?);
        }
        let special = special_tokens(&vocab);
        Ok(Self { vocab, splitter, model, special, style, prefix, suffix })
    }

    pub(super) fn special(&self) -> &SpecialTokens {
        &self.special
    }

    pub(super) fn style(&self) -> &Style {
        &self.style
    }

    pub(super) fn vocab_size(&self) -> usize {
        self.vocab.tokens.len()
    }

    /// A token from `first` on that is ordinary text.
    pub(super) fn text_token_from(&self, first: usize) -> Option<u32> {
        let is_text = |id: &u32| matches!(self.vocab.token_type(*id), TokenType::Normal | TokenType::Byte);
        (0u32..).take(self.vocab.tokens.len()).skip(first).find(is_text)
    }

    /// Whether texts are folded to lower case.
    pub(super) fn lowercase(&self) -> bool {
        matches!(&self.model, Model::WordPiece(w) if w.lowercase())
    }

    pub(super) fn encode(&self, text: &str, options: EncodeOptions) -> Result<Encoding> {
        let mut encoding = Encoding { ids: Vec::with_capacity(text.len() / 3 + 4), ..Encoding::default() };
        if options.add_special {
            encoding.ids.extend(&self.prefix);
            (encoding.num_prefix, encoding.num_suffix) = (self.prefix.len(), self.suffix.len());
        }
        let ids = &mut encoding.ids;
        let mut merger = Merger::default();
        let mut after_special = true;
        // Sentencepiece looks for user-defined tokens where spaces and their marks are the same already.
        let spaced = match &self.model {
            Model::Spm(_) if text.contains(spm::SPACE) => Cow::Owned(text.replace(spm::SPACE, " ")),
            _ => Cow::Borrowed(text),
        };
        for fragment in self.splitter.split(&spaced, options.parse_special) {
            match fragment {
                Fragment::Token(id) => ids.push(id),
                Fragment::Text(text) => match &self.model {
                    Model::Bpe(bpe) => bpe.encode(&self.vocab, text, &mut merger, ids)?,
                    Model::Spm(spm) => spm.encode(&self.vocab, text, after_special, &mut merger, ids)?,
                    Model::Unigram(unigram) => unigram.encode(&self.vocab, text, ids),
                    Model::WordPiece(pieces) => pieces.encode(&self.vocab, text, ids),
                },
            }
            after_special = matches!(fragment, Fragment::Token(_));
        }
        if options.add_special {
            ids.extend(&self.suffix);
        }
        Ok(encoding)
    }

    pub(super) fn token(&self, id: u32) -> Option<&[u8]> {
        self.vocab.tokens.get(id)
    }

    pub(super) fn is_control(&self, id: u32) -> bool {
        match self.vocab.token_type(id) {
            TokenType::Control => true,
            // Sentencepiece writes its unknown token; elsewhere it is a name like the others.
            TokenType::Unknown => !matches!(self.model, Model::Spm(_) | Model::Unigram(_)),
            _ => false,
        }
    }

    /// What the token stands for; the name of a control token.
    pub(super) fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let token = self.vocab.tokens.get(id)?;
        Some(match self.vocab.token_type(id) {
            TokenType::Unknown if !self.is_control(id) => style::UNKNOWN.as_bytes().to_vec(),
            TokenType::Control | TokenType::Unknown => token.to_vec(),
            TokenType::UserDefined if self.style == Style::ByteLevel => token.to_vec(),
            _ => self.style.bytes(token),
        })
    }
}

fn check(vocab: &GgufVocab) -> Result<()> {
    let tokens = vocab.tokens.len();
    if tokens == 0 {
        bail!(InvalidFile, "tokenizer.ggml.tokens: missing or empty");
    }
    if tokens + vocab.merges.len().saturating_mul(3) + 256 >= u32::MAX as usize {
        bail!(InvalidFile, "tokenizer.ggml.tokens: {tokens} tokens are too many");
    }
    if !vocab.token_types.is_empty() && vocab.token_types.len() != tokens {
        bail!(
            InvalidFile,
            "tokenizer.ggml.token_type: {} types for {tokens} tokens",
            vocab.token_types.len()
        );
    }
    Ok(())
}

/// Files in use name padding tokens that they do not have.
fn drop_ids_out_of_range(vocab: &mut GgufVocab) {
    let tokens = vocab.tokens.len();
    let ids = [
        ("bos", &mut vocab.bos),
        ("eos", &mut vocab.eos),
        ("eot", &mut vocab.eot),
        ("eom", &mut vocab.eom),
        ("unknown", &mut vocab.unk),
        ("seperator", &mut vocab.sep),
        ("padding", &mut vocab.pad),
        ("cls", &mut vocab.cls),
        ("mask", &mut vocab.mask),
    ];
    for (name, id) in ids {
        if let Some(out) = id.take_if(|id| *id as usize >= tokens) {
            tracing::warn!(
                "tokenizer.ggml.{name}_token_id: {out} is none of the {tokens} tokens, and is ignored"
            );
        }
    }
}

fn needed(id: Option<u32>, key: &str) -> Result<u32> {
    match id {
        Some(id) => Ok(id),
        None => bail!(
            InvalidFile,
            "tokenizer.ggml.{key}: missing or out of range, and texts must begin or end with it"
        ),
    }
}

fn id_of(vocab: &GgufVocab, text: &str) -> Option<u32> {
    vocab.tokens.iter().position(|t| t == text.as_bytes()).map(|id| id as u32)
}

fn special_tokens(vocab: &GgufVocab) -> SpecialTokens {
    let stop = if vocab.model == "bert" { vocab.eos.into_iter().collect() } else { vocab.stop_set() };
    SpecialTokens {
        bos: vocab.bos,
        eos: vocab.eos,
        eot: vocab.eot,
        eom: vocab.eom,
        unk: vocab.unk,
        sep: vocab.sep,
        pad: vocab.pad,
        cls: vocab.cls,
        mask: vocab.mask,
        stop,
    }
}
