//! A byte-level BPE from `tokenizer.json` to the `tokenizer.ggml.*` keys.

use std::path::Path;

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;
use serde_json::Value;

use super::entries::{Entries, expect, unsayable};
use super::{merges, roles};
use crate::text::{TokenType, TokenizerConfig, pre_tokenizer_name};
use crate::{Error, Result};

/// Adds the vocabulary; returns what the result lacks.
pub(super) fn write(
    m: &mut MetadataBuilder,
    folder: &Path,
    tokenizer: &Value,
    config: &TokenizerConfig,
    vocab_size: usize,
) -> Result<Vec<String>> {
    let model = &tokenizer["model"];
    let mut notes = Vec::new();
    for key in ["dropout", "continuing_subword_prefix", "end_of_word_suffix"] {
        expect(model, &format!("model.{key}"), key, &[Value::from("")])?;
    }
    match tokenizer["normalizer"]["type"].as_str() {
        None => {}
        Some("NFC") => notes.push(
            "GGUF cannot say that texts are normalised to NFC first: give texts with composed characters"
                .to_owned(),
        ),
        Some(_) => return Err(unsayable("normalizer", &tokenizer["normalizer"])),
    }
    let ignore_merges = model["ignore_merges"].as_bool().unwrap_or(false);
    let pre = pre_tokenizer_name(&tokenizer["pre_tokenizer"], ignore_merges)?;
    let Some(vocab) = model["vocab"].as_object() else { bail!(InvalidFile, "model.vocab is no object") };
    let mut entries = Entries::new(vocab_size);
    for (token, id) in vocab {
        entries.put(token, id, TokenType::Normal)?;
    }
    notes.extend(roles::put_added(&mut entries, tokenizer, vocab_size, str::to_owned)?);
    m.set("tokenizer.ggml.model", "gpt2");
    m.set("tokenizer.ggml.pre", pre);
    entries.write(m, str::to_owned);
    let merges =
        merges::pairs(model)?.into_iter().map(|(left, right)| match [left, right].concat().contains(' ') {
            // Tokens of bytes have no space, which parts the two here.
            true => {
                bail!(UnsupportedModel, "model.merges: GGUF cannot write {left:?} and {right:?} as one merge")
            }
            false => Ok(format!("{left} {right}")),
        });
    m.set_strs("tokenizer.ggml.merges", merges.collect::<Result<Vec<String>>>()?);
    notes.extend(roles::write(m, folder, &entries, config)?);
    Ok(notes)
}
