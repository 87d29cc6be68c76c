//! A WordPiece vocabulary from `tokenizer.json` to the `tokenizer.ggml.*` keys.
//!
//! GGUF marks the start of a word with U+2581 instead of its continuation with `##`.

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;
use serde_json::Value;

use super::entries::{Entries, expect};
use crate::text::{TokenType, TokenizerConfig};
use crate::{Error, Result};

/// The tokens' names where the config gives none.
const USUAL: &[(&str, &str)] =
    &[("seperator", "[SEP]"), ("padding", "[PAD]"), ("cls", "[CLS]"), ("mask", "[MASK]")];
/// The start of a word.
const START: char = '\u{2581}';

pub(super) fn write(
    m: &mut MetadataBuilder,
    tokenizer: &Value,
    config: &TokenizerConfig,
    vocab_size: usize,
) -> Result<()> {
    let model = &tokenizer["model"];
    expect(model, "model.type", "type", &[Value::from("WordPiece")])?;
    expect(model, "model.continuing_subword_prefix", "continuing_subword_prefix", &[Value::from("##")])?;
    expect(model, "model.max_input_chars_per_word", "max_input_chars_per_word", &[Value::from(100)])?;
    let normalizer = &tokenizer["normalizer"];
    expect(normalizer, "normalizer.type", "type", &[Value::from("BertNormalizer")])?;
    for key in ["clean_text", "handle_chinese_chars"] {
        expect(normalizer, &format!("normalizer.{key}"), key, &[Value::Bool(true)])?;
    }
    expect(&tokenizer["pre_tokenizer"], "pre_tokenizer.type", "type", &[Value::from("BertPreTokenizer")])?;
    let Some(vocab) = model["vocab"].as_object() else {
        bail!(InvalidFile, "model.vocab is no object");
    };
    let mut entries = Entries::new(vocab_size);
    for (token, id) in vocab {
        entries.put(token, id, TokenType::Normal)?;
    }
    entries.put_added(tokenizer)?;
    let unk = model["unk_token"].as_str().unwrap_or("[UNK]");
    let named = |name: &Option<String>, usual: &str| entries.id_of(name.as_deref().unwrap_or(usual));
    for (role, id) in [
        ("cls", named(&config.cls_token, "[CLS]")),
        ("separator", named(&config.sep_token, "[SEP]")),
        ("unknown", entries.id_of(unk)),
    ] {
        if id.is_none() {
            bail!(InvalidFile, "the vocabulary has no {role} token");
        }
    }
    m.set("tokenizer.ggml.model", "bert");
    entries.write(m, marked);
    let config = TokenizerConfig { unk_token: Some(unk.to_owned()), ..config.clone() };
    entries.write_roles(m, &config, USUAL);
    let lowercase = normalizer["lowercase"].as_bool().unwrap_or(true);
    m.set("tokenizer.ggml.normalizer.lowercase", lowercase);
    m.set(
        "tokenizer.ggml.normalizer.strip_accents",
        normalizer["strip_accents"].as_bool().unwrap_or(lowercase),
    );
    Ok(())
}

/// A token as GGUF writes it; names in brackets stay.
fn marked(token: &str) -> String {
    if token.starts_with('[') && token.ends_with(']') {
        return token.to_owned();
    }
    match token.strip_prefix("##") {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => format!("{START}{token}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_marked_where_they_start() {
        let cases = [("the", "▁the"), ("##ing", "ing"), ("[CLS]", "[CLS]"), ("[", "▁["), ("##", "▁##")];
        for (token, wanted) in cases {
            assert_eq!(marked(token), wanted);
        }
    }
}
