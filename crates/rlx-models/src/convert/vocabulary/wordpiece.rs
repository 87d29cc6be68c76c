//! A WordPiece vocabulary from `tokenizer.json` to the `tokenizer.ggml.*` keys.
//!
//! GGUF marks the start of a word with U+2581 instead of its continuation with `##`.

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;
use serde_json::Value;

use crate::files::limits::MAX_VOCAB;
use crate::text::{TokenType, TokenizerConfig};
use crate::{Error, Result};

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
    let (tokens, types) = vocabulary(tokenizer, vocab_size)?;
    let id_of = |name: &str| tokens.iter().position(|t| t.as_deref() == Some(name)).map(|id| id as u32);
    let gguf_tokens = tokens.iter().enumerate().map(|(id, t)| match t {
        Some(token) => marked(token),
        None => format!("[PAD{id}]"),
    });
    m.set("tokenizer.ggml.model", "bert");
    m.set_strs("tokenizer.ggml.tokens", gguf_tokens);
    m.set_numbers("tokenizer.ggml.token_type", &types);
    let unk = model["unk_token"].as_str().unwrap_or("[UNK]");
    let named = |name: &Option<String>, usual: &str| id_of(name.as_deref().unwrap_or(usual));
    for (key, id) in [
        ("cls", named(&config.cls_token, "[CLS]")),
        // GGUF spells it so.
        ("seperator", named(&config.sep_token, "[SEP]")),
        ("unknown", id_of(unk)),
        ("padding", named(&config.pad_token, "[PAD]")),
        ("mask", named(&config.mask_token, "[MASK]")),
    ] {
        match id {
            Some(id) => m.set(&format!("tokenizer.ggml.{key}_token_id"), id),
            None if matches!(key, "padding" | "mask") => {}
            None => bail!(InvalidFile, "the vocabulary has no {key} token"),
        }
    }
    let lowercase = normalizer["lowercase"].as_bool().unwrap_or(true);
    m.set("tokenizer.ggml.normalizer.lowercase", lowercase);
    m.set(
        "tokenizer.ggml.normalizer.strip_accents",
        normalizer["strip_accents"].as_bool().unwrap_or(lowercase),
    );
    Ok(())
}

/// Tokens by id, `None` where the vocabulary has a gap, and their types as GGUF numbers them.
fn vocabulary(tokenizer: &Value, vocab_size: usize) -> Result<(Vec<Option<String>>, Vec<i32>)> {
    let Some(vocab) = tokenizer["model"]["vocab"].as_object() else {
        bail!(InvalidFile, "model.vocab is no object");
    };
    let mut tokens: Vec<Option<String>> = vec![None; vocab_size.min(MAX_VOCAB)];
    let mut types = vec![TokenType::Unused as i32; tokens.len()];
    let mut put = |token: &str, id: &Value, ty: TokenType| {
        match id.as_u64().and_then(|id| usize::try_from(id).ok()).filter(|id| *id < vocab_size) {
            Some(id) => (tokens[id], types[id]) = (Some(token.to_owned()), ty as i32),
            None => {
                bail!(InvalidFile, "the id of {token:?} is {id}, but the network has {vocab_size} tokens")
            }
        }
        Ok(())
    };
    for (token, id) in vocab {
        put(token, id, TokenType::Normal)?;
    }
    for added in tokenizer["added_tokens"].as_array().into_iter().flatten() {
        let special = added["special"].as_bool().unwrap_or(false);
        let ty = if special { TokenType::Control } else { TokenType::UserDefined };
        put(added["content"].as_str().unwrap_or_default(), &added["id"], ty)?;
    }
    Ok((tokens, types))
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

fn expect(object: &Value, name: &str, key: &str, allowed: &[Value]) -> Result<()> {
    let found = &object[key];
    if !found.is_null() && !allowed.contains(found) {
        let found: String = found.to_string().chars().take(80).collect();
        bail!(UnsupportedModel, "{name} is {found}, which a WordPiece tokenizer in GGUF cannot say");
    }
    Ok(())
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
