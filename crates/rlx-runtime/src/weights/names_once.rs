//! The names of a safetensors header, each of which stands there once: which of two tensors is meant is not guessed.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

/// A JSON object whose keys differ.
struct NamesOnce;

impl<'de> Deserialize<'de> for NamesOnce {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = NamesOnce;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamesOnce, A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<IgnoredAny>()?;
            if seen.contains(&name) {
                return Err(A::Error::custom(format_args!("tensor {name:?} stands in it twice")));
            }
            seen.insert(name);
        }
        Ok(NamesOnce)
    }
}

/// Checks the header `json`. The error says which name stands in it twice.
pub(super) fn check(json: &[u8]) -> Result<(), String> {
    serde_json::from_slice::<NamesOnce>(json).map(|_| ()).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_there_twice_is_told() {
        assert_eq!(check(br#"{"a": {"a": 1, "a": 2}, "b": []}"#), Ok(()));
        let e = check(br#"{"a": {}, "b": {}, "\u0061": {}}"#).unwrap_err();
        assert!(e.contains("\"a\" stands in it twice"), "{e}");
    }
}
