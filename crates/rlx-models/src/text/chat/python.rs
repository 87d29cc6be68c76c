//! Values as Python writes them.

use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};
use unicode_categories::UnicodeCategories;

/// Deeper values than this are cut off: no conversation has them, and the stack has an end.
const MAX_DEPTH: usize = 100;

/// The longest text that one step of a template makes, in bytes: more than a context holds.
pub(super) const MAX_TEXT_BYTES: usize = 16 << 20;

/// `str(value)`; nothing where it is undefined. An error where it is too long.
pub(super) fn str_of(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None if value.is_undefined() => Ok(String::new()),
        None => {
            let mut out = Text::default();
            match repr(&mut out, value, 0) {
                Ok(()) => Ok(out.0),
                Err(_) => Err(too_long()),
            }
        }
    }
}

/// The error of a text beyond [`MAX_TEXT_BYTES`].
pub(super) fn too_long() -> Error {
    let message = format!("a text of more than {MAX_TEXT_BYTES} bytes is made of a value");
    Error::new(ErrorKind::InvalidOperation, message)
}

/// A text that does not grow beyond its limit.
#[derive(Default)]
pub(super) struct Text(pub(super) String);

impl Write for Text {
    fn write_str(&mut self, more: &str) -> std::fmt::Result {
        if more.len() > MAX_TEXT_BYTES - self.0.len() {
            return Err(std::fmt::Error);
        }
        self.0.push_str(more);
        Ok(())
    }
}

fn repr(out: &mut Text, value: &Value, depth: usize) -> std::fmt::Result {
    if let Some(float) = as_float(value) {
        return out.write_str(&float_repr(float));
    }
    if let Some(text) = value.as_str() {
        return quote(out, text);
    }
    let kind = value.kind();
    let Some(object) =
        value.as_object().filter(|_| matches!(kind, ValueKind::Map | ValueKind::Seq | ValueKind::Iterable))
    else {
        return write!(out, "{value}");
    };
    if depth >= MAX_DEPTH {
        return out.write_str("...");
    }
    if kind == ValueKind::Map {
        out.write_char('{')?;
        for (at, (key, value)) in object.try_iter_pairs().into_iter().flatten().enumerate() {
            out.write_str(if at > 0 { ", " } else { "" })?;
            repr(out, &key, depth + 1)?;
            out.write_str(": ")?;
            repr(out, &value, depth + 1)?;
        }
        return out.write_char('}');
    }
    let (open, close) = if value.is_tuple() { ('(', ')') } else { ('[', ']') };
    out.write_char(open)?;
    let mut len = 0;
    for item in value.try_iter().into_iter().flatten() {
        out.write_str(if len > 0 { ", " } else { "" })?;
        repr(out, &item, depth + 1)?;
        len += 1;
    }
    out.write_str(if value.is_tuple() && len == 1 { "," } else { "" })?;
    out.write_char(close)
}

/// The number, if it is one with a fraction.
pub(super) fn as_float(value: &Value) -> Option<f64> {
    if value.kind() == ValueKind::Number && !value.is_integer() {
        f64::try_from(value.clone()).ok()
    } else {
        None
    }
}

/// `repr(float)`: the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
pub(super) fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let power: i32 = exponent.parse().unwrap_or(0);
    if value == 0.0 || (-4..16).contains(&power) {
        let plain = value.to_string();
        if plain.contains('.') { plain } else { plain + ".0" }
    } else {
        let sign = if power < 0 { '-' } else { '+' };
        format!("{digits}e{sign}{:02}", power.abs())
    }
}

/// `repr(str)`.
fn quote(out: &mut Text, text: &str) -> std::fmt::Result {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(mark)?;
    for c in text.chars() {
        match c {
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\\' => out.write_str("\\\\")?,
            c if c == mark => write!(out, "\\{c}")?,
            c if c == ' ' || !(c.is_other() || c.is_separator()) => out.write_char(c)?,
            c => {
                let code = u32::from(c);
                match code {
                    0..=0xFF => write!(out, "\\x{code:02x}"),
                    0x100..=0xFFFF => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                }?;
            }
        }
    }
    out.write_char(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(float_repr(value), text);
        }
    }

    #[test]
    fn containers_and_their_texts_are_quoted() {
        let list: Value =
            [Value::from("it's"), Value::from("a\"'\n\u{7f}é\u{200b}"), Value::from(true), Value::from(())]
                .into_iter()
                .collect();
        assert_eq!(str_of(&list).unwrap(), r#"["it's", 'a"\'\n\x7fé\u200b', True, None]"#);
        let map = Value::from_pairs([("k", Value::from(1.0)), ("l", Value::from(vec![1, 2]))]);
        assert_eq!(str_of(&map).unwrap(), "{'k': 1.0, 'l': [1, 2]}");
        assert_eq!(str_of(&Value::UNDEFINED).unwrap(), "");
    }
}
