//! `config.json` with typed access.

use std::path::{Path, PathBuf};

use rlx_ir::bail;
use serde_json::{Map, Value};

use super::{limits, small};
use crate::{Error, Result};

/// A `config.json`. The getters give `None` where a key is absent or `null`, and an `InvalidFile` error that names file,
/// key and value where it holds something else; the `require_` forms make an absent key an error too.
#[derive(Clone, Debug)]
pub struct HfConfig {
    path: PathBuf,
    keys: Map<String, Value>,
}

impl HfConfig {
    /// Reads a file.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `InvalidFile` where it is no JSON object or longer than 16 MiB.
    pub fn open(path: &Path) -> Result<Self> {
        let bytes = small::read_up_to(path, small::CONFIG_BYTES)?;
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(keys)) => Ok(Self { path: path.to_owned(), keys }),
            Ok(_) => bail!(InvalidFile, "{}: expected a JSON object", path.display()),
            Err(e) => bail!(InvalidFile, "{}: {e}", path.display()),
        }
    }

    /// A config with these keys, called `path` in messages.
    pub fn new(path: impl Into<PathBuf>, keys: Map<String, Value>) -> Self {
        Self { path: path.into(), keys }
    }

    /// All keys.
    pub fn keys(&self) -> &Map<String, Value> {
        &self.keys
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses a model whose weights are quantised by a method of the Hugging Face layout: without that method's scales
    /// they would be read as other values.
    ///
    /// # Errors
    /// `UnsupportedModel` naming the method; `InvalidFile` where the section is no object.
    pub fn refuse_quantised(&self) -> Result<()> {
        let Some(section) = self.section("quantization_config")? else { return Ok(()) };
        let method: String = section.str("quant_method")?.unwrap_or("unknown").chars().take(80).collect();
        bail!(
            UnsupportedModel,
            "the weights are quantised by the method \"{method}\", which is not supported; take the model's GGUF or float weights"
        )
    }

    /// The value of a key, of whatever kind; `None` also for `null`.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.keys.get(key).filter(|v| !v.is_null())
    }

    /// Whether the key is there, be it as `null`.
    pub fn has_key(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// The config in the object `key` (`rope_scaling`, `text_config`).
    ///
    /// # Errors
    /// `InvalidFile` where it is no object.
    pub fn section(&self, key: &str) -> Result<Option<Self>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Object(keys)) => Ok(Some(Self { path: self.path.join(key), keys: keys.clone() })),
            Some(other) => Err(self.mismatch(key, "an object", other)),
        }
    }

    /// A string.
    ///
    /// # Errors
    /// `InvalidFile` for another kind.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "a string", Value::as_str)
    }

    /// A bool.
    ///
    /// # Errors
    /// `InvalidFile` for another kind.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        self.typed(key, "true or false", Value::as_bool)
    }

    /// A finite number.
    ///
    /// # Errors
    /// `InvalidFile` for another kind.
    pub fn f64(&self, key: &str) -> Result<Option<f64>> {
        self.typed(key, "a number", |v| v.as_f64().filter(|n| n.is_finite()))
    }

    /// A whole number, also if written as `512.0`.
    ///
    /// # Errors
    /// `InvalidFile` for another kind.
    pub fn usize(&self, key: &str) -> Result<Option<usize>> {
        const EXACT: f64 = 9_007_199_254_740_992.0; // 2^53: above, not every whole number is an f64.
        let whole = |n: f64| (n.fract() == 0.0 && (0.0..=EXACT).contains(&n)).then_some(n as u64);
        self.typed(key, "a whole number", |v| {
            v.as_u64().or_else(|| v.as_f64().and_then(whole)).and_then(|n| usize::try_from(n).ok())
        })
    }

    /// A whole number in `1..=max`.
    ///
    /// # Errors
    /// `InvalidFile` for another kind, and out of range.
    pub fn size(&self, key: &str, max: usize) -> Result<Option<usize>> {
        let Some(n) = self.usize(key)? else { return Ok(None) };
        limits::size(key, n, max).map(Some).map_err(|e| e.context(self.path.display()))
    }

    /// [`str`](Self::str) of a key that must be there.
    ///
    /// # Errors
    /// `InvalidFile`.
    pub fn require_str(&self, key: &str) -> Result<&str> {
        self.str(key)?.ok_or_else(|| self.missing(key))
    }

    /// [`f64`](Self::f64) of a key that must be there.
    ///
    /// # Errors
    /// `InvalidFile`.
    pub fn require_f64(&self, key: &str) -> Result<f64> {
        self.f64(key)?.ok_or_else(|| self.missing(key))
    }

    /// [`size`](Self::size) of a key that must be there.
    ///
    /// # Errors
    /// `InvalidFile`.
    pub fn require_size(&self, key: &str, max: usize) -> Result<usize> {
        self.size(key, max)?.ok_or_else(|| self.missing(key))
    }

    /// An error about this file, which it names.
    #[must_use]
    pub(crate) fn locate(&self, e: Error) -> Error {
        let place = self.path.display().to_string();
        if e.message().starts_with(&place) { e } else { e.context(place) }
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        convert(value).map(Some).ok_or_else(|| self.mismatch(key, expected, value))
    }

    fn missing(&self, key: &str) -> Error {
        let message = format!("{}: the key \"{key}\" is missing", self.path.display());
        Error::new(rlx_ir::ErrorKind::InvalidFile, message)
    }

    fn mismatch(&self, key: &str, expected: &str, found: &Value) -> Error {
        let found: String = found.to_string().chars().take(80).collect();
        let message = format!("{}: {key} is {found}, expected {expected}", self.path.display());
        Error::new(rlx_ir::ErrorKind::InvalidFile, message)
    }
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;
    use serde_json::json;

    use super::*;

    fn config(value: Value) -> HfConfig {
        let Value::Object(keys) = value else { panic!("an object") };
        HfConfig::new("m/config.json", keys)
    }

    #[test]
    fn errors_name_file_key_and_value() {
        let c = config(json!({ "hidden_size": "x", "layers": 1e18, "eps": null, "heads": 0 }));
        for (error, part) in [
            (c.require_size("hidden_size", 10).unwrap_err(), "\"x\""),
            (c.require_size("layers", 10).unwrap_err(), "layers"),
            (c.require_size("heads", 10).unwrap_err(), "expected 1 to 10"),
            (c.require_f64("eps").unwrap_err(), "\"eps\" is missing"),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidFile);
            assert!(error.message().starts_with("m/config.json: "), "{error}");
            assert!(error.message().contains(part), "{error}");
        }
    }

    #[test]
    fn whole_numbers_may_be_written_as_floats() {
        let c = config(json!({ "a": 512.0, "b": 512, "c": 512.5, "d": -1 }));
        assert_eq!(c.usize("a").unwrap(), Some(512));
        assert_eq!(c.usize("b").unwrap(), Some(512));
        assert!(c.usize("c").is_err() && c.usize("d").is_err());
        assert_eq!(c.usize("e").unwrap(), None);
    }
}
