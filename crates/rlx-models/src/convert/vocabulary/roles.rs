//! Which tokens have a role in a vocabulary of a language model: added ones, those that begin and end a text.

use std::path::Path;

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;
use serde_json::Value;

use super::entries::Entries;
use crate::text::{EncodeOptions, TokenType, Tokenizer, TokenizerConfig};
use crate::{Error, Result};

/// Puts the `added_tokens` at their ids, those that are text as `spell` writes it. Those for which the network has no vector are
/// left out: it could not read them.
pub(super) fn put_added(
    entries: &mut Entries,
    tokenizer: &Value,
    vocab_size: usize,
    spell: impl Fn(&str) -> String,
) -> Result<Option<String>> {
    let mut without_vector = Vec::new();
    for added in tokenizer["added_tokens"].as_array().into_iter().flatten() {
        let text = added["content"].as_str().unwrap_or_default();
        if added["id"].as_u64().is_some_and(|id| id >= vocab_size as u64) {
            without_vector.push(text);
            continue;
        }
        let special = added["special"].as_bool().unwrap_or(false);
        match special {
            true => entries.put(text, &added["id"], TokenType::Control)?,
            false => entries.put(&spell(text), &added["id"], TokenType::UserDefined)?,
        }
    }
    let note =
        || format!("left out, because the network has no vector for them: {}", without_vector.join(", "));
    Ok((!without_vector.is_empty()).then(note))
}

/// Writes the tokens with a role, and whether a text gets the first and the last of them. Returns what is lost.
pub(super) fn write(
    m: &mut MetadataBuilder,
    folder: &Path,
    entries: &Entries,
    config: &TokenizerConfig,
) -> Result<Option<String>> {
    entries.write_roles(m, config, &[]);
    let [bos, named_eos] = [&config.bos_token, &config.eos_token]
        .map(|name| name.as_deref().and_then(|name| entries.id_of(name)));
    let tokenizer = Tokenizer::from_folder(folder)?;
    let encoding = tokenizer.encode("a", EncodeOptions::default())?;
    let (prefix, rest) = encoding.ids.split_at(encoding.num_prefix.min(encoding.ids.len()));
    let suffix = &rest[rest.len() - encoding.num_suffix.min(rest.len())..];
    // Encoders have other names for the tokens around a text, and embedding models may end texts otherwise than answers.
    let bos = bos.or(if let [one] = prefix { Some(*one) } else { None });
    if let Some(bos) = bos {
        m.set("tokenizer.ggml.bos_token_id", bos);
    }
    // A model may end its texts in several ways: the config lists them all.
    let listed = named_eos.into_iter().chain(config.eos_token_ids.iter().copied());
    let eos = if let [one] = suffix { Some(*one) } else { listed.clone().next() };
    if let Some(eos) = eos {
        m.set("tokenizer.ggml.eos_token_id", eos);
    }
    let mut others: Vec<u32> = Vec::new();
    for id in listed {
        if Some(id) != eos && !others.contains(&id) {
            others.push(id);
        }
    }
    let eom = others.iter().position(|id| entries.text(*id).is_some_and(|text| text.contains("eom")));
    if let Some(at) = eom {
        m.set("tokenizer.ggml.eom_token_id", others.remove(at));
    }
    if !others.is_empty() {
        m.set("tokenizer.ggml.eot_token_id", others.remove(0));
    }
    for (key, added, role, name) in
        [("add_bos_token", prefix, bos, "beginning"), ("add_eos_token", suffix, eos, "end")]
    {
        let adds = match added {
            [] => false,
            [one] if Some(*one) == role => true,
            other => bail!(
                UnsupportedModel,
                "post_processor: GGUF cannot say that the tokens {other:?} are added at the {name} of a text"
            ),
        };
        m.set(&format!("tokenizer.ggml.{key}"), adds);
    }
    let note = || format!("GGUF has no place for all tokens that end a text: {others:?} are lost");
    Ok((!others.is_empty()).then(note))
}
