//! What the files beside `tokenizer.json` say about it.

use std::path::Path;

use serde_json::Value;

use crate::json;
use crate::{Error, Result};

/// Roles of tokens and limits, from `tokenizer_config.json`, `special_tokens_map.json`, `generation_config.json` and
/// `config.json`. All of these files and all of their keys are optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenizerConfig {
    /// Begin of text.
    pub bos_token: Option<String>,
    /// End of text.
    pub eos_token: Option<String>,
    /// What the vocabulary cannot write.
    pub unk_token: Option<String>,
    /// Separator of two texts.
    pub sep_token: Option<String>,
    /// Padding.
    pub pad_token: Option<String>,
    /// Stands for the whole text.
    pub cls_token: Option<String>,
    /// Stands for a hidden token.
    pub mask_token: Option<String>,
    /// The ids that end a generation: `eos_token_id` of `generation_config.json`, else of `config.json`.
    pub eos_token_ids: Vec<u32>,
    /// `model_max_length`, unless it is one of the huge numbers that mean "none".
    pub model_max_length: Option<usize>,
}

impl TokenizerConfig {
    /// Reads the files in `folder`.
    ///
    /// # Errors
    /// `InvalidFile` for a file that is no JSON, or a value of a kind that it cannot have.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let read = |name| json::read_object(folder, name);
        let within = |name: &str, e: Error| e.context(folder.join(name).display());
        let map = read("special_tokens_map.json")?.unwrap_or(Value::Null);
        let main = read("tokenizer_config.json")?.unwrap_or(Value::Null);
        let token = |key: &str| content(main.get(key)).or_else(|| content(map.get(key)));
        let mut eos_token_ids = Vec::new();
        for name in ["generation_config.json", "config.json"] {
            if eos_token_ids.is_empty()
                && let Some(config) = read(name)?
            {
                eos_token_ids = json::token_ids(&config, "eos_token_id").map_err(|e| within(name, e))?;
            }
        }
        let max = json::number(&main, "model_max_length").map_err(|e| within("tokenizer_config.json", e))?;
        Ok(Self {
            bos_token: token("bos_token"),
            eos_token: token("eos_token"),
            unk_token: token("unk_token"),
            sep_token: token("sep_token"),
            pad_token: token("pad_token"),
            cls_token: token("cls_token"),
            mask_token: token("mask_token"),
            eos_token_ids,
            model_max_length: max.filter(|m| (1.0..1e9).contains(m)).map(|m| m as usize),
        })
    }

    /// The tokens with a role by their names in these files: `bos_token`.
    pub(super) fn named_tokens(&self) -> Vec<(String, String)> {
        let named = [
            ("bos_token", &self.bos_token),
            ("eos_token", &self.eos_token),
            ("unk_token", &self.unk_token),
            ("sep_token", &self.sep_token),
            ("pad_token", &self.pad_token),
            ("cls_token", &self.cls_token),
            ("mask_token", &self.mask_token),
        ];
        named.into_iter().filter_map(|(name, token)| Some((name.to_owned(), token.clone()?))).collect()
    }
}

/// A token that is written as its text or as an object with `content`.
fn content(value: Option<&Value>) -> Option<String> {
    let value = value?;
    value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_owned)
}
