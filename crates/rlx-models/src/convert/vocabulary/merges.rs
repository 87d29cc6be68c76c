//! The merges of a BPE in a `tokenizer.json`, which has two spellings for them.

use rlx_ir::bail;
use serde_json::Value;

use crate::{Error, Result};

/// The pairs in order: `["a b", ...]` or `[["a", "b"], ...]`.
pub(super) fn pairs(model: &Value) -> Result<Vec<(&str, &str)>> {
    let Some(merges) = model["merges"].as_array() else { bail!(InvalidFile, "model.merges is no list") };
    let mut pairs = Vec::with_capacity(merges.len());
    for merge in merges {
        let found = match merge {
            Value::String(text) => text.split_once(' '),
            Value::Array(two) => match two.as_slice() {
                [Value::String(left), Value::String(right)] => Some((left.as_str(), right.as_str())),
                _ => None,
            },
            _ => None,
        };
        match found {
            Some(pair) => pairs.push(pair),
            None => {
                let merge: String = merge.to_string().chars().take(80).collect();
                bail!(InvalidFile, "model.merges: {merge} is no pair of tokens")
            }
        }
    }
    Ok(pairs)
}
