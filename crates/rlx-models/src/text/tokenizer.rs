//! One tokenizer type for all sources.

use std::path::Path;

use rlx_ir::bail;

use super::gguf_tokenizer::GgufTokenizer;
use super::hf::HfTokenizer;
use super::style::Style;
use super::utf8::Utf8Stream;
use super::{Encoding, GgufVocab, SpecialTokens, TokenizerConfig};
use crate::files::small;
use crate::{Error, Result};

/// How a text is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Adds the tokens that the model wants around a text: BOS, or CLS and SEP.
    pub add_special: bool,
    /// Takes the names of special tokens within the text for these tokens, not for text.
    pub parse_special: bool,
}

impl Default for EncodeOptions {
    /// Both, as the reference implementations do.
    fn default() -> Self {
        Self { add_special: true, parse_special: true }
    }
}

/// What decoding does with special tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpecialText {
    /// They are no text.
    #[default]
    Skip,
    /// Their names are written.
    Keep,
}

enum Kind {
    Hf(Box<HfTokenizer>),
    Gguf(Box<GgufTokenizer>),
}

/// Turns texts into token ids and back.
///
/// Built from `tokenizer.json` or from the vocabulary in a GGUF file. It has no limit of its own: padding and
/// truncation that a file may ask for are dropped, see [`Encoding::truncate`].
///
/// ```
/// use rlx_models::text::{EncodeOptions, GgufVocab, Tokenizer, TokenType};
///
/// let vocab = GgufVocab {
///     model: "bert".into(),
///     tokens: ["[UNK]", "[CLS]", "[SEP]", "▁token", "izer", "s"].into_iter().collect(),
///     token_types: [2, 3, 3, 1, 1, 1].map(TokenType::from_gguf).to_vec(),
///     ..GgufVocab::default()
/// };
/// let tokenizer = Tokenizer::from_gguf(vocab)?;
/// let encoding = tokenizer.encode("Tokenizers!", EncodeOptions::default())?;
/// assert_eq!(encoding.ids, [1, 3, 4, 5, 0, 2]);
/// # Ok::<(), rlx_models::Error>(())
/// ```
pub struct Tokenizer {
    kind: Kind,
}

impl Tokenizer {
    /// A tokenizer from the text of a `tokenizer.json`. Its roles (BOS, EOS, ...) are not in that file: see
    /// [`Tokenizer::from_folder`].
    ///
    /// # Errors
    /// `InvalidFile` if the `tokenizers` crate cannot read it, or would not be able to run it.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        Ok(Self { kind: Kind::Hf(Box::new(HfTokenizer::new(json)?)) })
    }

    /// A tokenizer from a folder in the Hugging Face layout: `tokenizer.json`, with the roles of its tokens from
    /// `tokenizer_config.json` and `special_tokens_map.json` and the stop set from `generation_config.json` and
    /// `config.json`, where these files are there.
    ///
    /// # Errors
    /// `NotFound` without a `tokenizer.json`; `InvalidFile` for a file that is damaged or far too long.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        let Some(json) = small::read_optional(&path)? else {
            bail!(NotFound, "{}: no such file, and the model needs its tokenizer", path.display())
        };
        let mut tokenizer = Self::from_json(&json).map_err(|e| e.context(folder.display()))?;
        tokenizer.set_roles(&TokenizerConfig::from_folder(folder)?);
        Ok(tokenizer)
    }

    /// A tokenizer from the vocabulary of a GGUF file.
    ///
    /// # Errors
    /// `UnsupportedModel` for a model or pre-tokenizer that is not known; `InvalidFile` for a vocabulary that lacks
    /// what its model needs.
    pub fn from_gguf(vocab: GgufVocab) -> Result<Self> {
        Ok(Self { kind: Kind::Gguf(Box::new(GgufTokenizer::new(vocab)?)) })
    }

    /// Gives tokens the roles that `config` names. Does nothing to a tokenizer from GGUF, which knows them.
    pub fn set_roles(&mut self, config: &TokenizerConfig) {
        let Kind::Hf(hf) = &mut self.kind else { return };
        let id = |name: &Option<String>| name.as_deref().and_then(|n| hf.id_of(n));
        let eos = id(&config.eos_token);
        let mut stop = config.eos_token_ids.clone();
        stop.extend(eos);
        stop.sort_unstable();
        stop.dedup();
        let special = SpecialTokens {
            bos: id(&config.bos_token),
            eos,
            eot: None,
            eom: None,
            unk: id(&config.unk_token),
            sep: id(&config.sep_token),
            pad: id(&config.pad_token),
            cls: id(&config.cls_token),
            mask: id(&config.mask_token),
            stop,
        };
        *hf.special_mut() = special;
    }

    /// The tokens of `text`. Time grows as `n log n` at most.
    ///
    /// # Errors
    /// `InvalidArgument` for a text of 1 GiB or more, or of more than 16 MiB with a `tokenizer.json`; `InvalidFile` if the
    /// vocabulary cannot write the text and has no unknown token.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Result<Encoding> {
        const MAX_BYTES: usize = 1 << 30;
        if text.len() >= MAX_BYTES {
            bail!(
                InvalidArgument,
                "the text has {} bytes, and at most {} can be encoded at once",
                text.len(),
                MAX_BYTES - 1
            );
        }
        match &self.kind {
            Kind::Hf(hf) => hf.encode(text, options),
            Kind::Gguf(gguf) => gguf.encode(text, options),
        }
    }

    /// The tokens of a text that will be cut at `limit` ([`Encoding::truncate`]): where there are more, these may be those of a
    /// start of it that has more than `limit` too and begins with the same ones. Memory and time do not grow with what is cut.
    ///
    /// # Errors
    /// As [`encode`](Self::encode) for as much of the text as is encoded.
    pub fn encode_start(&self, text: &str, options: EncodeOptions, limit: usize) -> Result<Encoding> {
        match &self.kind {
            Kind::Hf(hf) => hf.encode_start(text, options, limit),
            Kind::Gguf(_) => self.encode(text, options),
        }
    }

    /// The text that `ids` stand for. Bytes that are no UTF-8 become U+FFFD; ids beyond the vocabulary are nothing.
    ///
    /// # Errors
    /// `InvalidArgument` if the decoder of a `tokenizer.json` fails.
    pub fn decode(&self, ids: &[u32], special: SpecialText) -> Result<String> {
        let gguf = match &self.kind {
            Kind::Hf(hf) => return hf.decode(ids, special == SpecialText::Skip),
            Kind::Gguf(gguf) => gguf,
        };
        let mut stream = Utf8Stream::default();
        let mut text = String::new();
        for &id in ids {
            if special == SpecialText::Keep || !gguf.is_control(id) {
                stream.push(&gguf.token_bytes(id).unwrap_or_default(), &mut text);
            }
        }
        stream.finish(&mut text);
        if self.style().strips_space() && text.starts_with(' ') {
            text.remove(0);
        }
        Ok(text)
    }

    /// The bytes that a token stands for, or the name of a special token. `None` beyond the vocabulary.
    ///
    /// A token that starts a word brings its space. The bytes of one token need not be UTF-8.
    pub fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        match &self.kind {
            Kind::Hf(hf) => hf.token_bytes(id),
            Kind::Gguf(gguf) => gguf.token_bytes(id),
        }
    }

    /// The token as the vocabulary spells it.
    pub fn token(&self, id: u32) -> Option<String> {
        match &self.kind {
            Kind::Hf(hf) => hf.token(id),
            Kind::Gguf(gguf) => gguf.token(id).map(|t| String::from_utf8_lossy(t).into_owned()),
        }
    }

    /// Whether a token steers the model and is no text.
    pub fn is_special(&self, id: u32) -> bool {
        match &self.kind {
            Kind::Hf(hf) => hf.is_control(id),
            Kind::Gguf(gguf) => gguf.is_control(id),
        }
    }

    /// How many ids there are: one more than the highest one, added tokens included. Not each needs to have a token.
    pub fn vocab_size(&self) -> usize {
        match &self.kind {
            Kind::Hf(hf) => hf.vocab_size(),
            Kind::Gguf(gguf) => gguf.vocab_size(),
        }
    }

    /// Checks that this is the tokenizer of a network with `rows` token vectors.
    ///
    /// Fewer tokens are usual: tables of token vectors are padded. A few more are too, if they are added ones, which a model
    /// was not trained with: they are refused where a text holds them, by [`Tokenizer::check_ids`].
    ///
    /// # Errors
    /// `InvalidFile` where a token of ordinary text has no vector.
    pub fn check_rows(&self, rows: usize) -> Result<()> {
        let ids = self.vocab_size();
        let beyond = match &self.kind {
            Kind::Hf(hf) => hf.text_token_from(rows),
            Kind::Gguf(gguf) => gguf.text_token_from(rows),
        };
        if let Some(id) = beyond {
            bail!(
                InvalidFile,
                "the tokenizer has the token {:?} ({id}), but the network has {rows} tokens only: they do not belong together",
                self.brief_token(id)
            );
        }
        if ids > rows {
            tracing::warn!(
                "the tokenizer has ids up to {}, and the network {rows} tokens: texts with such a token are refused",
                ids - 1
            );
        } else if ids < rows / 2 {
            tracing::warn!(
                "the tokenizer has {ids} tokens, and the network {rows}: they may not belong together"
            );
        }
        Ok(())
    }

    /// Checks that a network with `rows` token vectors has one for each of `ids`.
    ///
    /// # Errors
    /// `InvalidFile` naming the token that has none.
    pub fn check_ids(&self, ids: &[u32], rows: usize) -> Result<()> {
        match ids.iter().find(|id| **id as usize >= rows) {
            None => Ok(()),
            Some(&id) => bail!(
                InvalidFile,
                "the tokenizer gives the token {:?} ({id}), but the network has {rows} tokens only",
                self.brief_token(id)
            ),
        }
    }

    /// The ids below `end` that have no token, ascending: nothing can be written with them.
    pub fn gaps(&self, end: usize) -> Vec<u32> {
        match &self.kind {
            Kind::Hf(hf) => hf.gaps(end),
            Kind::Gguf(gguf) => (0u32..).take(end).skip(gguf.vocab_size()).collect(),
        }
    }

    fn brief_token(&self, id: u32) -> String {
        self.token(id).unwrap_or_default().chars().take(80).collect()
    }

    /// The tokens with a role.
    pub fn special_tokens(&self) -> &SpecialTokens {
        match &self.kind {
            Kind::Hf(hf) => hf.special(),
            Kind::Gguf(gguf) => gguf.special(),
        }
    }

    /// Whether this is a WordPiece vocabulary from GGUF that folds texts to lower case.
    pub fn lowercases(&self) -> bool {
        matches!(&self.kind, Kind::Gguf(gguf) if gguf.lowercase())
    }

    pub(super) fn style(&self) -> &Style {
        match &self.kind {
            Kind::Hf(hf) => hf.style(),
            Kind::Gguf(gguf) => gguf.style(),
        }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("style", self.style())
            .field("vocab_size", &self.vocab_size())
            .finish()
    }
}
