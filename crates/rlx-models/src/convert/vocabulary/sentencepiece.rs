//! A BPE over characters with fallback to bytes, as `tokenizer.json` has it for models of sentencepiece, to the
//! `tokenizer.ggml.*` keys.
//!
//! GGUF has no merges for it: of all tokens that neighbours can become, the one with the best score is made. That is the same
//! where the merges are all pairs that make a token, in the order of the tokens; others are refused.

use std::collections::HashMap;
use std::path::Path;

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;
use serde_json::Value;

use super::entries::{Entries, expect, unsayable};
use super::{merges, roles};
use crate::text::{TokenType, TokenizerConfig};
use crate::{Error, Result};

/// What stands for a space.
const SPACE: &str = "\u{2581}";
/// The score of tokens that no merge makes; control tokens have it in published files too.
const UNMADE: f32 = -1e6;

/// Adds the vocabulary; returns what the result lacks.
pub(super) fn write(
    m: &mut MetadataBuilder,
    folder: &Path,
    tokenizer: &Value,
    config: &TokenizerConfig,
    vocab_size: usize,
) -> Result<Vec<String>> {
    let model = &tokenizer["model"];
    for key in ["dropout", "continuing_subword_prefix", "end_of_word_suffix"] {
        expect(model, &format!("model.{key}"), key, &[Value::from("")])?;
    }
    let Some(vocab) = model["vocab"].as_object() else { bail!(InvalidFile, "model.vocab is no object") };
    let mut entries = Entries::new(vocab_size);
    for (token, id) in vocab {
        let ty = if is_byte(token) { TokenType::Byte } else { TokenType::Normal };
        entries.put(token, id, ty)?;
    }
    // Texts are searched for these before their spaces are marked.
    let spaced = |text: &str| text.replace(SPACE, " ");
    let mut notes = Vec::from_iter(roles::put_added(&mut entries, tokenizer, vocab_size, spaced)?);
    let scores = scores(vocab, tokenizer, &merges::pairs(model)?, vocab_size)?;
    if let Some(unknown) = model["unk_token"].as_str().and_then(|token| entries.id_of(token)) {
        entries.set_type(unknown as usize, TokenType::Unknown);
        m.set("tokenizer.ggml.unknown_token_id", unknown);
    }
    m.set("tokenizer.ggml.model", "llama");
    m.set("tokenizer.ggml.pre", "default");
    entries.write(m, str::to_owned);
    m.set_numbers("tokenizer.ggml.scores", &scores);
    m.set("tokenizer.ggml.add_space_prefix", space_prefix(tokenizer)?);
    notes.extend(roles::write(m, folder, &entries, config)?);
    Ok(notes)
}

fn is_byte(token: &str) -> bool {
    let hex = token.strip_prefix("<0x").and_then(|t| t.strip_suffix('>'));
    hex.is_some_and(|hex| hex.len() == 2 && u8::from_str_radix(hex, 16).is_ok())
}

/// A score per id: minus the place of the token's first merge among those of all tokens.
fn scores(
    vocab: &serde_json::Map<String, Value>,
    tokenizer: &Value,
    pairs: &[(&str, &str)],
    vocab_size: usize,
) -> Result<Vec<f32>> {
    let mut scores = vec![UNMADE; vocab_size];
    let mut made: HashMap<String, usize> = HashMap::new();
    let mut before = String::new();
    let mut place = 0u32;
    for (left, right) in pairs {
        let token = [*left, *right].concat();
        if token != before {
            if made.contains_key(&token) {
                bail!(
                    UnsupportedModel,
                    "model.merges: those that make {token:?} do not stand together, so GGUF has no scores for them"
                );
            }
            let id = vocab.get(&token).and_then(Value::as_u64).and_then(|id| usize::try_from(id).ok());
            match id.and_then(|id| scores.get_mut(id)) {
                Some(score) => *score = -(place as f32),
                None => bail!(InvalidFile, "model.merges make {token:?}, which is no token"),
            }
            place += 1;
        }
        *made.entry(token.clone()).or_default() += 1;
        before = token;
    }
    // f32 counts so far without a gap.
    if place > 1 << 24 {
        bail!(UnsupportedModel, "model.merges make {place} tokens, more than scores can tell apart");
    }
    let is_added = |token: &str| {
        let mut added = tokenizer["added_tokens"].as_array().into_iter().flatten();
        added.any(|a| a["content"] == token)
    };
    for token in vocab.keys().filter(|token| !is_byte(token)) {
        let borders = token.char_indices().skip(1).map(|(at, _)| token.split_at(at));
        let whole = |part: &str| vocab.contains_key(part) && !is_byte(part);
        let possible = borders.filter(|(left, right)| whole(left) && whole(right)).count();
        let listed = made.get(token).copied().unwrap_or(0);
        if possible != listed && !is_added(token) {
            bail!(
                UnsupportedModel,
                "model.merges: {listed} of the {possible} pairs that make {token:?} are listed, and scores would use them all"
            );
        }
    }
    Ok(scores)
}

/// Whether a text gets a space in front, which normalizer or pre-tokenizer say.
fn space_prefix(tokenizer: &Value) -> Result<bool> {
    let mut prefix = false;
    let mut marks_spaces = false;
    for (name, part, list) in [
        ("normalizer", &tokenizer["normalizer"], "normalizers"),
        ("pre_tokenizer", &tokenizer["pre_tokenizer"], "pretokenizers"),
    ] {
        let one = std::slice::from_ref(part);
        for step in part[list].as_array().map_or(one, Vec::as_slice) {
            match step["type"].as_str() {
                None if step.is_null() => {}
                Some("Prepend") if step["prepend"] == SPACE => prefix = true,
                Some("Replace") if step["pattern"]["String"] == " " && step["content"] == SPACE => {
                    marks_spaces = true;
                }
                Some("Metaspace") if step["replacement"] == SPACE && step["split"] != true => {
                    marks_spaces = true;
                    prefix = step["prepend_scheme"] != "never";
                }
                // Cuts at spaces, of which the step before left none.
                Some("Split") if step["pattern"]["String"] == " " && marks_spaces => {}
                _ => return Err(unsayable(name, step)),
            }
        }
    }
    if !marks_spaces {
        return Err(unsayable("normalizer", &tokenizer["normalizer"]));
    }
    Ok(prefix)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scores_of(vocab: &[&str], merges: &[(&str, &str)]) -> Result<Vec<f32>> {
        let vocab: serde_json::Map<String, Value> =
            vocab.iter().enumerate().map(|(id, t)| ((*t).to_owned(), Value::from(id))).collect();
        let tokenizer = json!({ "added_tokens": [{ "content": "xyz" }] });
        scores(&vocab, &tokenizer, merges, vocab.len())
    }

    #[test]
    fn earlier_merges_score_higher() {
        let vocab = ["a", "b", "c", "ab", "abc", "bc", "xyz", "<0x41>"];
        let merges = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc")];
        let scores = scores_of(&vocab, &merges).unwrap();
        assert_eq!(scores, [UNMADE, UNMADE, UNMADE, 0.0, -2.0, -1.0, UNMADE, UNMADE]);
    }

    #[test]
    fn merges_that_scores_cannot_say_are_refused() {
        let vocab = ["a", "b", "c", "ab", "abc", "bc"];
        for (merges, part) in [
            (vec![("a", "b"), ("b", "c"), ("ab", "c")], "1 of the 2 pairs"),
            (vec![("a", "b"), ("ab", "c"), ("b", "c"), ("a", "bc")], "do not stand together"),
            (vec![("a", "b")], "0 of the"),
            (vec![("a", "c")], "no token"),
        ] {
            let e = scores_of(&vocab, &merges).unwrap_err();
            assert!(e.message().contains(part), "{e}");
        }
    }

    #[test]
    fn spaces_in_front_are_found() {
        let replace = json!({ "type": "Replace", "pattern": { "String": " " }, "content": SPACE });
        let prepend = json!({ "type": "Prepend", "prepend": SPACE });
        let metaspace = |scheme: &str| json!({ "type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": false });
        for (tokenizer, prefix) in [
            (json!({ "normalizer": { "type": "Sequence", "normalizers": [prepend, replace] } }), true),
            (
                json!({ "normalizer": replace, "pre_tokenizer": {
                "type": "Split", "pattern": { "String": " " }, "behavior": "MergedWithPrevious"
            } }),
                false,
            ),
            (json!({ "normalizer": null, "pre_tokenizer": metaspace("first") }), true),
            (json!({ "normalizer": null, "pre_tokenizer": metaspace("never") }), false),
        ] {
            assert_eq!(space_prefix(&tokenizer).unwrap(), prefix, "{tokenizer}");
        }
        for wrong in [json!({}), json!({ "normalizer": { "type": "NFKC" } })] {
            assert!(space_prefix(&wrong).is_err());
        }
    }
}
