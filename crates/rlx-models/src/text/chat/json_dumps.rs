//! The filter `tojson`, as Python's `json.dumps` writes: nothing is escaped for HTML.

use std::fmt::Write;

use minijinja::value::{DynObject, Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::python::{MAX_TEXT_BYTES, as_float, float_repr, too_long};

const MAX_DEPTH: usize = 100;

struct Style {
    ensure_ascii: bool,
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
}

/// `value | tojson(ensure_ascii=False, indent=None, separators=None, sort_keys=False)`.
#[allow(clippy::needless_pass_by_value)] // the engine hands arguments over so
pub(super) fn tojson(value: &Value, positional: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let argument = |at: usize, name: &str| -> Result<Option<Value>, Error> {
        let named: Option<Value> = kwargs.get(name)?;
        Ok(named.or_else(|| positional.get(at).cloned()).filter(|v| !v.is_none() && !v.is_undefined()))
    };
    let ensure_ascii = argument(0, "ensure_ascii")?.is_some_and(|v| v.is_true());
    let indent = argument(1, "indent")?.map(|v| match v.as_str() {
        Some(text) => text.to_owned(),
        None => " ".repeat(v.as_i64().unwrap_or(0).clamp(0, 64) as usize),
    });
    let separators = match argument(2, "separators")? {
        None => [if indent.is_some() { "," } else { ", " }, ": "].map(str::to_owned),
        Some(pair) => {
            let texts: Vec<Value> = pair.try_iter()?.collect();
            match texts.as_slice() {
                [item, key] => [item, key].map(|v| v.as_str().unwrap_or_default().to_owned()),
                _ => return Err(error("separators are a pair of texts")),
            }
        }
    };
    let sort_keys = argument(3, "sort_keys")?.is_some_and(|v| v.is_true());
    kwargs.assert_all_used()?;
    let [item_separator, key_separator] = separators;
    let style = Style { ensure_ascii, indent, item_separator, key_separator, sort_keys };
    if [&style.item_separator, &style.key_separator].into_iter().chain(&style.indent).any(|s| s.len() > 1024)
    {
        return Err(error("separators and indents of more than 1024 bytes are asked for"));
    }
    let mut out = String::new();
    style.write(&mut out, value, 0)?;
    Ok(out)
}

impl Style {
    fn write(&self, out: &mut String, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(error("the value is nested too deeply"));
        }
        if out.len() > MAX_TEXT_BYTES {
            return Err(too_long());
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&number(value)),
            ValueKind::String => self.quote(out, value.as_str().unwrap_or_default()),
            ValueKind::Seq => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.container(out, ['[', ']'], &items, depth, |out, item| self.write(out, item, depth + 1))?;
            }
            ValueKind::Map if value.as_object().is_some() => {
                let pairs = value.as_object().and_then(DynObject::try_iter_pairs);
                let mut pairs: Vec<(String, Value)> = pairs
                    .into_iter()
                    .flatten()
                    .map(|(key, value)| Ok((key_text(&key)?, value)))
                    .collect::<Result<_, Error>>()?;
                if self.sort_keys {
                    pairs.sort_by(|a, b| a.0.cmp(&b.0));
                }
                self.container(out, ['{', '}'], &pairs, depth, |out, (key, value)| {
                    self.quote(out, key);
                    out.push_str(&self.key_separator);
                    self.write(out, value, depth + 1)
                })?;
            }
            kind => return Err(error(&format!("a value of type {kind} cannot be written as JSON"))),
        }
        Ok(())
    }

    fn container<T>(
        &self,
        out: &mut String,
        [open, close]: [char; 2],
        items: &[T],
        depth: usize,
        mut write: impl FnMut(&mut String, &T) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let line = |out: &mut String, depth| {
            if let Some(indent) = &self.indent
                && !items.is_empty()
            {
                out.push('\n');
                out.push_str(&indent.repeat(depth));
            }
        };
        out.push(open);
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                out.push_str(&self.item_separator);
            }
            line(out, depth + 1);
            write(out, item)?;
        }
        line(out, depth);
        out.push(close);
        Ok(())
    }

    fn quote(&self, out: &mut String, text: &str) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || (self.ensure_ascii && !(' '..='~').contains(&c)) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        // Writing to a string does not fail.
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

fn number(value: &Value) -> String {
    match as_float(value) {
        None => value.to_string(),
        Some(float) if float.is_nan() => "NaN".to_owned(),
        Some(float) if float.is_infinite() => if float > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        Some(float) => float_repr(float),
    }
}

/// The text of a key: keys that are numbers, booleans or none become texts.
fn key_text(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::Number => Ok(number(key)),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.to_owned()),
        ValueKind::None => Ok("null".to_owned()),
        kind => Err(error(&format!("a key of type {kind} cannot be written as JSON"))),
    }
}

fn error(message: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("tojson: {message}"))
}
