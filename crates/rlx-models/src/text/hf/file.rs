//! What is checked of a `tokenizer.json` before the `tokenizers` crate reads it: what would make it panic, run without end or
//! exhaust the stack. Its own tools write no such file.

use std::fmt;

use rlx_ir::bail;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::text::base64;
use crate::text::charsmap::Charsmap;
use crate::{Error, Result};

/// Sections of real files have up to 7 levels; the crate's time grows exponentially with them.
const MAX_LEVELS: usize = 12;
/// The crate's trie of unigram pieces has a level for each byte, and is dropped level by level on the stack.
const MAX_PIECE_BYTES: usize = 1024;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    #[serde(default)]
    post_processor: Value,
    #[serde(default)]
    decoder: Value,
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    continuing_subword_prefix: Option<String>,
    #[serde(default)]
    vocab: Vocab,
    #[serde(default)]
    merges: Merges,
}

/// What a file says of the ids in its vocabulary.
pub(super) struct Checked {
    /// One more than the highest id of the model; added tokens may have higher ones.
    pub(super) model_ids: usize,
}

/// Checks the text of a `tokenizer.json`.
///
/// # Errors
/// `InvalidFile`, without the name of the file.
pub(super) fn check(json: &[u8]) -> Result<Checked> {
    let file: File = match serde_json::from_slice(json) {
        Ok(file) => file,
        Err(e) => bail!(InvalidFile, "{e}"),
    };
    for (name, section) in [
        ("normalizer", &file.normalizer),
        ("pre_tokenizer", &file.pre_tokenizer),
        ("post_processor", &file.post_processor),
        ("decoder", &file.decoder),
    ] {
        if levels_exceed(section, MAX_LEVELS) {
            bail!(InvalidFile, "{name}: more than {MAX_LEVELS} levels of lists and objects");
        }
    }
    each_object(&file.normalizer, &mut check_charsmap)?;
    each_object(&file.pre_tokenizer, &mut check_length)?;
    let mut templates = 0;
    each_object(&file.post_processor, &mut |object| check_template(object, &mut templates))?;
    let Model { continuing_subword_prefix, vocab, merges } = file.model;
    if vocab.is_list && vocab.longest > MAX_PIECE_BYTES {
        bail!(
            InvalidFile,
            "model.vocab: a piece of {} bytes, and {MAX_PIECE_BYTES} are the most",
            vocab.longest
        );
    }
    match continuing_subword_prefix.as_deref().unwrap_or_default() {
        "" if merges.longest > vocab.longest => {
            bail!(InvalidFile, "model.merges: a pair of {} bytes together makes no token", merges.longest)
        }
        "" => {}
        prefix => check_merges(json, prefix, vocab.longest)?,
    }
    Ok(Checked { model_ids: vocab.ids })
}

fn levels_exceed(value: &Value, levels: usize) -> bool {
    let below = |value: &Value| levels == 0 || levels_exceed(value, levels - 1);
    match value {
        Value::Array(items) => items.iter().any(below),
        Value::Object(fields) => fields.values().any(below),
        _ => false,
    }
}

/// Calls `check` with each object in a section, whose levels are bounded.
fn each_object(section: &Value, check: &mut dyn FnMut(&Value) -> Result<()>) -> Result<()> {
    match section {
        Value::Array(items) => items.iter().try_for_each(|item| each_object(item, check)),
        Value::Object(fields) => {
            check(section)?;
            fields.values().try_for_each(|field| each_object(field, check))
        }
        _ => Ok(()),
    }
}

fn check_charsmap(normalizer: &Value) -> Result<()> {
    let map = &normalizer["precompiled_charsmap"];
    if map.is_null() && normalizer["type"] != "Precompiled" {
        return Ok(());
    }
    let Some(map) = map.as_str().and_then(base64::decode) else {
        bail!(InvalidFile, "normalizer: precompiled_charsmap is missing or no base64");
    };
    let within = |e: Error| e.context("normalizer: precompiled_charsmap");
    Charsmap::parse(&map).map_err(within)?.check().map_err(within)
}

fn check_length(pre_tokenizer: &Value) -> Result<()> {
    if pre_tokenizer["type"] == "FixedLength" && pre_tokenizer["length"] == 0 {
        bail!(InvalidFile, "pre_tokenizer: FixedLength cuts texts into parts of length 0");
    }
    Ok(())
}

/// A template of one text has no second one, and its special tokens are listed; where there are two, the second finds the parts
/// of the first and no text.
fn check_template(processor: &Value, templates: &mut usize) -> Result<()> {
    let Some(single) = processor["single"].as_array() else { return Ok(()) };
    *templates += 1;
    if *templates > 1 {
        bail!(InvalidFile, "post_processor: more than one TemplateProcessing");
    }
    for piece in single {
        if let Some(id) = piece["SpecialToken"]["id"].as_str()
            && processor["special_tokens"].get(id).is_none()
        {
            let id: String = id.chars().take(80).collect();
            bail!(InvalidFile, "post_processor: the template's token {id:?} is none of special_tokens");
        }
        if piece["Sequence"]["id"] == "B" {
            bail!(InvalidFile, "post_processor: the template of one text names a second one");
        }
    }
    Ok(())
}

/// Each right part starts with the prefix, which is left out of the token that a merge makes.
fn check_merges(json: &[u8], prefix: &str, longest: usize) -> Result<()> {
    #[derive(Deserialize)]
    struct File {
        model: Model,
    }
    #[derive(Deserialize)]
    struct Model {
        #[serde(default)]
        merges: Option<Vec<Merge>>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Merge {
        Pair(String, String),
        Line(String),
    }
    let file: File = match serde_json::from_slice(json) {
        Ok(file) => file,
        Err(e) => bail!(InvalidFile, "{e}"),
    };
    for (at, merge) in file.model.merges.iter().flatten().enumerate() {
        let (left, right) = match merge {
            Merge::Pair(left, right) => (left.as_str(), right.as_str()),
            // Lines with another number of parts are refused by the crate.
            Merge::Line(line) => line.split_once(' ').unwrap_or(("", prefix)),
        };
        let Some(right) = right.strip_prefix(prefix) else {
            bail!(InvalidFile, "model.merges[{at}]: its right part lacks the prefix {prefix:?}");
        };
        if left.len() + right.len() > longest {
            bail!(InvalidFile, "model.merges[{at}]: the pair makes no token");
        }
    }
    Ok(())
}

/// The length of a text in bytes.
struct TextLen(usize);

impl<'de> Deserialize<'de> for TextLen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = TextLen;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> std::result::Result<TextLen, E> {
                Ok(TextLen(text.len()))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// What is to be known of a vocabulary: an object of ids by token, or a list of pieces with their scores.
#[derive(Default)]
struct Vocab {
    /// Bytes of the longest token.
    longest: usize,
    /// One more than the highest id.
    ids: usize,
    is_list: bool,
}

impl<'de> Deserialize<'de> for Vocab {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Tokens;
        impl<'de> Visitor<'de> for Tokens {
            type Value = Vocab;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("ids by token, or a list of pieces with their scores")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Vocab, A::Error> {
                let mut vocab = Vocab::default();
                while let Some((TextLen(len), id)) = map.next_entry::<TextLen, u32>()? {
                    vocab.longest = vocab.longest.max(len);
                    vocab.ids = vocab.ids.max(id as usize + 1);
                }
                Ok(vocab)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Vocab, A::Error> {
                let mut vocab = Vocab { is_list: true, ..Vocab::default() };
                while let Some((TextLen(len), IgnoredAny)) = seq.next_element()? {
                    vocab.longest = vocab.longest.max(len);
                    vocab.ids += 1;
                }
                Ok(vocab)
            }
        }
        deserializer.deserialize_any(Tokens)
    }
}

/// What is to be known of the merges of a BPE model: pairs, or lines of two tokens with a space between.
#[derive(Default)]
struct Merges {
    /// Bytes of the longest pair.
    longest: usize,
}

impl<'de> Deserialize<'de> for Merges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Merges;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a list of merges")
            }

            fn visit_unit<E>(self) -> std::result::Result<Merges, E> {
                Ok(Merges::default())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Merges, A::Error> {
                let mut merges = Merges::default();
                while let Some(Pair(len)) = seq.next_element()? {
                    merges.longest = merges.longest.max(len);
                }
                Ok(merges)
            }
        }
        deserializer.deserialize_any(Pairs)
    }
}

/// The bytes of one merge's tokens.
struct Pair(usize);

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Merge;
        impl<'de> Visitor<'de> for Merge {
            type Value = Pair;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a pair of tokens")
            }

            fn visit_str<E>(self, line: &str) -> std::result::Result<Pair, E> {
                // The first line may name the version of the format.
                Ok(Pair(if line.starts_with("#version") { 0 } else { line.len().saturating_sub(1) }))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Pair, A::Error> {
                let mut len = 0;
                while let Some(TextLen(part)) = seq.next_element()? {
                    len += part;
                }
                Ok(Pair(len))
            }
        }
        deserializer.deserialize_any(Merge)
    }
}
