//! A tokenizer from `tokenizer.json`, run by the `tokenizers` crate.
//!
//! Files are hostile and that crate is not made for it: [`file`] checks what it would fail on, and [`guard`] is the one way to
//! it, which turns whatever is left into an error.

mod file;
mod guard;
mod start;

use std::collections::HashSet;
use std::sync::OnceLock;

use rlx_ir::bail;
use tokenizers::DecoderWrapper;

use self::guard::guarded;
use super::style::Style;
use super::{EncodeOptions, Encoding, SpecialTokens};
use crate::{Error, Result};

/// The longest text that is encoded at once: the crate takes 100 to 160 bytes of memory for each of it.
const MAX_BYTES: usize = 16 << 20;

pub(super) struct HfTokenizer {
    /// Finds special tokens in the text.
    parsing: tokenizers::Tokenizer,
    /// Takes their names for text. Made when it is first needed.
    literal: OnceLock<tokenizers::Tokenizer>,
    special: SpecialTokens,
    special_ids: HashSet<u32>,
    style: Style,
    num_prefix: usize,
    num_suffix: usize,
    /// One more than the highest id, and one more than that of the model, which has no added tokens.
    num_ids: usize,
    model_ids: usize,
}

impl HfTokenizer {
    pub(super) fn new(json: &[u8]) -> Result<Self> {
        let checked = file::check(json).map_err(|e| e.context("tokenizer.json"))?;
        let loaded = guarded(|| {
            let mut tokenizer = tokenizers::Tokenizer::from_bytes(json)?;
            // Limits are the caller's: the file often holds those of some training run.
            tokenizer.with_padding(None);
            tokenizer.with_truncation(None)?;
            Ok(tokenizer)
        });
        let parsing = match loaded {
            Ok(tokenizer) => tokenizer,
            Err(e) => bail!(InvalidFile, "tokenizer.json: {e}"),
        };
        let added = parsing.get_added_tokens_decoder();
        let added_ids = added.keys().max().map_or(0, |&id| id as usize + 1);
        let special_ids = added.iter().filter(|(_, token)| token.special).map(|(&id, _)| id).collect();
        let style = style_of(parsing.get_decoder());
        let bare = ids(&parsing, "a", EncodeOptions { add_special: false, parse_special: true })?;
        let full = ids(&parsing, "a", EncodeOptions { add_special: true, parse_special: true })?;
        let num_added = full.len().saturating_sub(bare.len());
        let num_prefix = (0..=num_added).find(|&at| full[at..].starts_with(&bare)).unwrap_or(0);
        let special = SpecialTokens::default();
        let num_suffix = num_added - num_prefix;
        Ok(Self {
            parsing,
            literal: OnceLock::new(),
            special,
            special_ids,
            style,
            num_prefix,
            num_suffix,
            num_ids: checked.model_ids.max(added_ids),
            model_ids: checked.model_ids,
        })
    }

    pub(super) fn special(&self) -> &SpecialTokens {
        &self.special
    }

    pub(super) fn special_mut(&mut self) -> &mut SpecialTokens {
        &mut self.special
    }

    pub(super) fn style(&self) -> &Style {
        &self.style
    }

    pub(super) fn vocab_size(&self) -> usize {
        self.num_ids
    }

    /// A token from `first` on that is ordinary text: one of the model's, and no added one.
    pub(super) fn text_token_from(&self, first: usize) -> Option<u32> {
        if self.model_ids <= first {
            return None;
        }
        let added = self.parsing.get_added_tokens_decoder();
        let beyond = self.parsing.get_vocab(false).into_values();
        beyond.filter(|id| *id as usize >= first && !added.contains_key(id)).min()
    }

    /// The ids below `end` that have no token.
    pub(super) fn gaps(&self, end: usize) -> Vec<u32> {
        if end <= self.num_ids && self.parsing.get_vocab_size(true) >= self.num_ids {
            return Vec::new();
        }
        let vocab: HashSet<u32> = self.parsing.get_vocab(true).into_values().collect();
        (0u32..).take(end).filter(|id| !vocab.contains(id)).collect()
    }

    pub(super) fn id_of(&self, token: &str) -> Option<u32> {
        self.parsing.token_to_id(token)
    }

    pub(super) fn encode(&self, text: &str, options: EncodeOptions) -> Result<Encoding> {
        if text.len() > MAX_BYTES {
            bail!(
                InvalidArgument,
                "the text has {} bytes, and a tokenizer.json encodes at most {MAX_BYTES} at once: give it in parts",
                text.len()
            );
        }
        let tokenizer = if options.parse_special {
            &self.parsing
        } else {
            self.literal.get_or_init(|| {
                let mut literal = self.parsing.clone();
                literal.set_encode_special_tokens(true);
                literal
            })
        };
        let ids = ids(tokenizer, text, options)?;
        let (num_prefix, num_suffix) =
            if options.add_special { (self.num_prefix, self.num_suffix) } else { (0, 0) };
        Ok(Encoding { ids, num_prefix, num_suffix })
    }

    pub(super) fn token(&self, id: u32) -> Option<String> {
        self.parsing.id_to_token(id)
    }

    pub(super) fn is_control(&self, id: u32) -> bool {
        self.special_ids.contains(&id)
    }

    /// What the token stands for; the name of a special token.
    pub(super) fn token_bytes(&self, id: u32) -> Option<Vec<u8>> {
        let token = self.parsing.id_to_token(id)?;
        Some(if self.is_control(id) { token.into_bytes() } else { self.style.bytes(token.as_bytes()) })
    }

    pub(super) fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        match guarded(|| self.parsing.decode(ids, skip_special)) {
            Ok(text) => Ok(text),
            Err(e) => bail!(InvalidArgument, "decoding {} tokens: {e}", ids.len()),
        }
    }
}

fn ids(tokenizer: &tokenizers::Tokenizer, text: &str, options: EncodeOptions) -> Result<Vec<u32>> {
    match guarded(|| tokenizer.encode_fast(text, options.add_special)) {
        Ok(encoding) => Ok(encoding.get_ids().to_vec()),
        Err(e) => bail!(InvalidFile, "tokenizer.json: a text of {} bytes cannot be encoded: {e}", text.len()),
    }
}

/// The style that a decoder of the `tokenizers` crate amounts to.
fn style_of(decoder: Option<&DecoderWrapper>) -> Style {
    match decoder {
        Some(DecoderWrapper::ByteLevel(_)) => Style::ByteLevel,
        Some(DecoderWrapper::WordPiece(w)) => {
            Style::WordPiecePrefix { prefix: w.prefix.clone(), close_up: w.cleanup }
        }
        Some(DecoderWrapper::Metaspace(m)) => {
            let never = tokenizers::pre_tokenizers::metaspace::PrependScheme::Never;
            Style::Sentencepiece { strip_space: m.get_prepend_scheme() != never }
        }
        Some(DecoderWrapper::Sequence(steps)) => {
            let steps = steps.get_decoders();
            if steps.iter().any(|s| matches!(s, DecoderWrapper::ByteLevel(_))) {
                Style::ByteLevel
            } else if steps
                .iter()
                .any(|s| matches!(s, DecoderWrapper::Replace(_) | DecoderWrapper::ByteFallback(_)))
            {
                let strip_space = steps.iter().any(|s| matches!(s, DecoderWrapper::Strip(s) if s.start > 0));
                Style::Sentencepiece { strip_space }
            } else {
                steps.iter().map(|s| style_of(Some(s))).find(|s| *s != Style::Plain).unwrap_or(Style::Plain)
            }
        }
        _ => Style::Plain,
    }
}
