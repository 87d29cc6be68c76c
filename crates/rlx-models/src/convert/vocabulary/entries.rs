//! The tokens of a vocabulary by id, as GGUF lists them.

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;
use serde_json::Value;

use crate::files::limits::MAX_VOCAB;
use crate::text::{TokenType, TokenizerConfig};
use crate::{Error, Result};

/// Tokens by id with their types. Ids that no token has stay unused.
pub(super) struct Entries {
    texts: Vec<Option<String>>,
    types: Vec<TokenType>,
}

impl Entries {
    /// As many ids as the network has tokens.
    pub(super) fn new(vocab_size: usize) -> Self {
        let len = vocab_size.min(MAX_VOCAB);
        Self { texts: vec![None; len], types: vec![TokenType::Unused; len] }
    }

    /// Puts a token at its id.
    pub(super) fn put(&mut self, text: &str, id: &Value, ty: TokenType) -> Result<()> {
        match id.as_u64().and_then(|id| usize::try_from(id).ok()).filter(|id| *id < self.texts.len()) {
            Some(id) => (self.texts[id], self.types[id]) = (Some(text.to_owned()), ty),
            None => {
                let vocab_size = self.texts.len();
                bail!(InvalidFile, "the id of {text:?} is {id}, but the network has {vocab_size} tokens")
            }
        }
        Ok(())
    }

    /// Puts the `added_tokens` at their ids.
    pub(super) fn put_added(&mut self, tokenizer: &Value) -> Result<()> {
        for added in tokenizer["added_tokens"].as_array().into_iter().flatten() {
            let special = added["special"].as_bool().unwrap_or(false);
            let ty = if special { TokenType::Control } else { TokenType::UserDefined };
            self.put(added["content"].as_str().unwrap_or_default(), &added["id"], ty)?;
        }
        Ok(())
    }

    /// Another type for the token at an id.
    pub(super) fn set_type(&mut self, id: usize, ty: TokenType) {
        if let Some(old) = self.types.get_mut(id) {
            *old = ty;
        }
    }

    /// The text of a token.
    pub(super) fn text(&self, id: u32) -> Option<&str> {
        self.texts.get(id as usize)?.as_deref()
    }

    /// The id of a token.
    pub(super) fn id_of(&self, text: &str) -> Option<u32> {
        self.texts.iter().position(|t| t.as_deref() == Some(text)).map(|id| id as u32)
    }

    /// Writes tokens, their text changed by `spell`, and types.
    pub(super) fn write(&self, m: &mut MetadataBuilder, spell: impl Fn(&str) -> String) {
        let texts = self.texts.iter().enumerate().map(|(id, text)| match text {
            Some(text) => spell(text),
            None => format!("[PAD{id}]"),
        });
        m.set_strs("tokenizer.ggml.tokens", texts);
        let types: Vec<i32> = self.types.iter().map(|ty| *ty as i32).collect();
        m.set_numbers("tokenizer.ggml.token_type", &types);
    }

    /// Writes the ids of the tokens that have a role, where the vocabulary has them. `usual` are their names where the
    /// config gives none.
    pub(super) fn write_roles(
        &self,
        m: &mut MetadataBuilder,
        config: &TokenizerConfig,
        usual: &[(&str, &str)],
    ) {
        for (role, name) in [
            ("bos", &config.bos_token),
            ("eos", &config.eos_token),
            ("unknown", &config.unk_token),
            // GGUF spells it so.
            ("seperator", &config.sep_token),
            ("padding", &config.pad_token),
            ("cls", &config.cls_token),
            ("mask", &config.mask_token),
        ] {
            let usual = usual.iter().find(|(of, _)| *of == role).map(|(_, name)| *name);
            if let Some(id) = name.as_deref().or(usual).and_then(|name| self.id_of(name)) {
                m.set(&format!("tokenizer.ggml.{role}_token_id"), id);
            }
        }
    }
}

/// Refuses another value of `key` than `allowed`; an absent key, or `null`, is allowed.
pub(super) fn expect(object: &Value, name: &str, key: &str, allowed: &[Value]) -> Result<()> {
    let found = &object[key];
    if !found.is_null() && !allowed.contains(found) {
        return Err(unsayable(name, found));
    }
    Ok(())
}

/// GGUF cannot say that `name` is `found`.
pub(super) fn unsayable(name: &str, found: &Value) -> Error {
    let found: String = found.to_string().chars().take(80).collect();
    let message = format!("{name} is {found}, which a tokenizer of this kind in GGUF cannot say");
    Error::new(rlx_ir::ErrorKind::UnsupportedModel, message)
}
