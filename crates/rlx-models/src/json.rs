//! Reading the JSON files beside a model: absent files, and facts that are written in more than one way.

use std::path::Path;

use rlx_ir::bail;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::files::small;
use crate::{Error, Result};

/// The parsed file `folder/name`, or `None` if there is no such file.
///
/// # Errors
/// `InvalidFile` if it is no JSON, not of the expected form, no regular file or far too long (16 MiB, `tokenizer.json`
/// 512 MiB); `Io` if it cannot be read; both name the file.
pub fn read_optional<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>> {
    let path = folder.join(name);
    let Some(text) = small::read_optional(&path)? else { return Ok(None) };
    match serde_json::from_slice(&text) {
        Ok(value) => Ok(Some(value)),
        Err(e) => bail!(InvalidFile, "{}: {e}", path.display()),
    }
}

/// The parsed object `folder/name`, or `None` if there is no such file.
///
/// # Errors
/// As [`read_optional`]; `InvalidFile` for JSON that is no object.
pub fn read_object(folder: &Path, name: &str) -> Result<Option<Value>> {
    match read_optional::<Value>(folder, name)? {
        None => Ok(None),
        Some(value) if value.is_object() => Ok(Some(value)),
        Some(value) => {
            let kind = match value {
                Value::Null => "null",
                Value::Array(_) => "a list",
                _ => "a single value",
            };
            bail!(InvalidFile, "{}: expected a JSON object, found {kind}", folder.join(name).display())
        }
    }
}

/// Token ids that are written as one number or as a list of them (`eos_token_id`). `null` and absence are no ids.
///
/// # Errors
/// `InvalidFile`, naming `key`, for anything else.
pub fn token_ids(object: &Value, key: &str) -> Result<Vec<u32>> {
    let values = match object.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(values)) => values.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let ids: Option<Vec<u32>> = values.iter().map(|v| whole(v).and_then(|n| u32::try_from(n).ok())).collect();
    match ids {
        Some(ids) => Ok(ids),
        None => bail!(InvalidFile, "{key}: {} is no token id and no list of them", Value::from(values)),
    }
}

/// A count: a whole number, also if written as `512.0` or `"512"`. `None` if absent or `null`.
///
/// # Errors
/// `InvalidFile`, naming `key`, for anything else.
pub fn count(object: &Value, key: &str) -> Result<Option<u64>> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match whole(value) {
            Some(n) => Ok(Some(n)),
            None => bail!(InvalidFile, "{key}: {value} is no whole number"),
        },
    }
}

/// A number, also if written as a string. `None` if absent or `null`.
///
/// # Errors
/// `InvalidFile`, naming `key`, for anything else.
pub fn number(object: &Value, key: &str) -> Result<Option<f64>> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()) {
            Some(n) => Ok(Some(n)),
            None => bail!(InvalidFile, "{key}: {value} is no number"),
        },
    }
}

fn whole(value: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53: above, not every whole number is an f64.
    let from_float = |n: f64| (n.fract() == 0.0 && (0.0..=EXACT).contains(&n)).then_some(n as u64);
    match value {
        Value::Number(n) => n.as_u64().or_else(|| n.as_f64().and_then(from_float)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn token_ids_are_a_number_or_a_list() {
        let ids = |v: Value| token_ids(&json!({ "eos_token_id": v }), "eos_token_id");
        assert_eq!(ids(json!(2)).unwrap(), [2]);
        assert_eq!(ids(json!([1, 106.0])).unwrap(), [1, 106]);
        assert_eq!(ids(json!(null)).unwrap(), [0; 0]);
        assert_eq!(token_ids(&json!({}), "eos_token_id").unwrap(), [0; 0]);
        for bad in [json!(-1), json!(1.5), json!("x"), json!([1, null]), json!({}), json!(5_000_000_000u64)] {
            let e = ids(bad).unwrap_err();
            assert_eq!(e.kind(), rlx_ir::ErrorKind::InvalidFile);
            assert!(e.to_string().contains("eos_token_id"), "{e}");
        }
    }

    #[test]
    fn counts_and_numbers_may_be_written_as_text() {
        let object = json!({ "a": 512.0, "b": " 7", "c": "1e-5", "d": 1e30, "e": null, "f": true });
        assert_eq!(count(&object, "a").unwrap(), Some(512));
        assert_eq!(count(&object, "b").unwrap(), Some(7));
        assert_eq!(count(&object, "e").unwrap(), None);
        assert_eq!(number(&object, "c").unwrap(), Some(1e-5));
        assert_eq!(number(&object, "d").unwrap(), Some(1e30));
        assert!(count(&object, "d").is_err());
        assert!(count(&object, "f").is_err());
        assert!(number(&object, "f").is_err());
    }

    #[test]
    fn an_absent_file_is_none() {
        assert_eq!(read_optional::<Value>(Path::new("no/such/folder"), "config.json").unwrap(), None);
    }
}
