//! A unigram vocabulary (sentencepiece's, as XLM-RoBERTa has it) from `tokenizer.json` to the `tokenizer.ggml.*` keys, which
//! call it `t5`.

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;
use serde_json::{Value, json};

use super::entries::{Entries, expect, unsayable};
use crate::text::{TokenType, TokenizerConfig, base64};
use crate::{Error, Result};

/// The score of ids that no token has: below that of every text.
const UNUSED_SCORE: f32 = -10_000.0;
/// The tokens' names where the config gives none.
const USUAL: &[(&str, &str)] = &[
    ("bos", "<s>"),
    ("eos", "</s>"),
    ("unknown", "<unk>"),
    ("seperator", "</s>"),
    ("padding", "<pad>"),
    ("cls", "<s>"),
    ("mask", "<mask>"),
];

pub(super) fn write(
    m: &mut MetadataBuilder,
    tokenizer: &Value,
    config: &TokenizerConfig,
    vocab_size: usize,
) -> Result<()> {
    let model = &tokenizer["model"];
    expect(model, "model.byte_fallback", "byte_fallback", &[json!(false)])?;
    let Some(vocab) = model["vocab"].as_array() else { bail!(InvalidFile, "model.vocab is no list") };
    let mut entries = Entries::new(vocab_size);
    let mut scores = vec![UNUSED_SCORE; vocab_size];
    for (id, piece) in vocab.iter().enumerate() {
        let (Some(text), Some(score)) = (piece[0].as_str(), piece[1].as_f64()) else {
            bail!(InvalidFile, "model.vocab[{id}] is no pair of a text and a score");
        };
        entries.put(text, &json!(id), TokenType::Normal)?;
        scores[id] = score as f32;
    }
    entries.put_added(tokenizer)?;
    let Some(unk) = model["unk_id"].as_u64().and_then(|id| usize::try_from(id).ok()) else {
        bail!(InvalidFile, "model.unk_id is missing");
    };
    if unk >= vocab.len() {
        bail!(InvalidFile, "model.unk_id is {unk}, but there are {} pieces", vocab.len());
    }
    entries.set_type(unk, TokenType::Unknown);

    let spaces = Spaces::of(tokenizer)?;
    let charsmap = spaces.charsmap.as_deref().map(base64::decode);
    m.set("tokenizer.ggml.model", "t5");
    m.set("tokenizer.ggml.pre", "default");
    entries.write(m, str::to_owned);
    m.set_numbers("tokenizer.ggml.scores", &scores);
    entries.write_roles(m, config, USUAL);
    m.set("tokenizer.ggml.unknown_token_id", unk as u32);
    m.set("tokenizer.ggml.add_space_prefix", spaces.prefix);
    m.set("tokenizer.ggml.remove_extra_whitespaces", spaces.merged);
    match charsmap {
        None => {}
        Some(Some(bytes)) => m.set_numbers("tokenizer.ggml.precompiled_charsmap", &bytes),
        Some(None) => bail!(InvalidFile, "normalizer.precompiled_charsmap is no base64"),
    }
    added(m, tokenizer, &entries, config)
}

/// What happens to a text before it is cut.
#[derive(Default)]
struct Spaces {
    /// Whether a space is put in front.
    prefix: bool,
    /// Whether several spaces count as one.
    merged: bool,
    /// Replacements of characters, in base64.
    charsmap: Option<String>,
}

impl Spaces {
    fn of(tokenizer: &Value) -> Result<Self> {
        let mut out = Self::default();
        for step in steps(&tokenizer["normalizer"], "normalizers") {
            match step["type"].as_str().unwrap_or_default() {
                "Precompiled" if out.charsmap.is_none() && !out.merged => {
                    let Some(map) = step["precompiled_charsmap"].as_str() else {
                        bail!(InvalidFile, "normalizer.precompiled_charsmap is no text");
                    };
                    out.charsmap = Some(map.to_owned()).filter(|map| !map.is_empty());
                }
                "Replace" if step["pattern"] == json!({ "Regex": " {2,}" }) => {
                    expect(step, "normalizer.content", "content", &[json!(" "), json!("\u{2581}")])?;
                    out.merged = true;
                }
                // Spaces at the ends go with the others.
                "Strip" => {}
                _ => return Err(unsayable("normalizer", step)),
            }
        }
        for step in steps(&tokenizer["pre_tokenizer"], "pretokenizers") {
            match step["type"].as_str().unwrap_or_default() {
                "WhitespaceSplit" => out.merged = true,
                "Metaspace" => {
                    expect(step, "pre_tokenizer.replacement", "replacement", &[json!("\u{2581}")])?;
                    out.prefix = match (step["prepend_scheme"].as_str(), step["add_prefix_space"].as_bool()) {
                        (Some("always" | "first"), _) | (None, None | Some(true)) => true,
                        (Some("never"), _) | (None, Some(false)) => false,
                        _ => return Err(unsayable("pre_tokenizer.prepend_scheme", &step["prepend_scheme"])),
                    };
                }
                _ => return Err(unsayable("pre_tokenizer", step)),
            }
        }
        Ok(out)
    }
}

/// The parts of a sequence, or the one step that it is.
fn steps<'a>(step: &'a Value, parts: &str) -> Vec<&'a Value> {
    match step {
        Value::Null => Vec::new(),
        _ if step["type"] == "Sequence" => step[parts].as_array().into_iter().flatten().collect(),
        _ => vec![step],
    }
}

/// Which tokens are put around a text.
fn added(
    m: &mut MetadataBuilder,
    tokenizer: &Value,
    entries: &Entries,
    config: &TokenizerConfig,
) -> Result<()> {
    let around = &tokenizer["post_processor"];
    let id = |name: &Value| name.as_str().and_then(|name| entries.id_of(name));
    let (first, last) = match around["type"].as_str() {
        None => (None, None),
        Some("TemplateProcessing") => {
            let single = around["single"].as_array().map(Vec::as_slice).unwrap_or_default();
            let special = |step: &Value| id(&step["SpecialToken"]["id"]);
            match single {
                [text] if !text["Sequence"].is_null() => (None, None),
                [first, text] if !text["Sequence"].is_null() => (special(first), None),
                [text, last] if !text["Sequence"].is_null() => (None, special(last)),
                [first, text, last] if !text["Sequence"].is_null() => (special(first), special(last)),
                _ => return Err(unsayable("post_processor.single", &around["single"])),
            }
        }
        Some("RobertaProcessing" | "BertProcessing") => (id(&around["cls"][0]), id(&around["sep"][0])),
        Some(_) => return Err(unsayable("post_processor", &around["type"])),
    };
    let role = |name: &Option<String>, usual: &str| entries.id_of(name.as_deref().unwrap_or(usual));
    for (key, found, role) in [
        ("add_bos_token", first, role(&config.bos_token, "<s>")),
        ("add_eos_token", last, role(&config.eos_token, "</s>")),
    ] {
        if found.is_some() && found != role {
            return Err(unsayable("post_processor", around));
        }
        m.set(&format!("tokenizer.ggml.{key}"), found.is_some());
    }
    Ok(())
}
