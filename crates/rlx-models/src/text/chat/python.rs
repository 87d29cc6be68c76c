//! Values as Python writes them.

use std::fmt::Write;

use minijinja::Value;
use minijinja::value::{DynObject, ValueKind};
use unicode_categories::UnicodeCategories;

/// Deeper values than this are cut off: no conversation has them, and the stack has an end.
const MAX_DEPTH: usize = 100;

/// `str(value)`; nothing where it is undefined.
pub(super) fn str_of(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None if value.is_undefined() => String::new(),
        None => {
            let mut out = String::new();
            repr(&mut out, value, 0);
            out
        }
    }
}

fn repr(out: &mut String, value: &Value, depth: usize) {
    if let Some(float) = as_float(value) {
        out.push_str(&float_repr(float));
    } else if let Some(text) = value.as_str() {
        quote(out, text);
    } else if depth < MAX_DEPTH && value.kind() == ValueKind::Map && value.as_object().is_some() {
        let pairs = value.as_object().and_then(DynObject::try_iter_pairs);
        out.push('{');
        for (at, (key, value)) in pairs.into_iter().flatten().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            repr(out, &key, depth + 1);
            out.push_str(": ");
            repr(out, &value, depth + 1);
        }
        out.push('}');
    } else if depth < MAX_DEPTH && value.kind() == ValueKind::Seq {
        let (open, close) = if value.is_tuple() { ('(', ')') } else { ('[', ']') };
        out.push(open);
        let mut len = 0;
        for item in value.try_iter().into_iter().flatten() {
            out.push_str(if len > 0 { ", " } else { "" });
            repr(out, &item, depth + 1);
            len += 1;
        }
        out.push_str(if value.is_tuple() && len == 1 { "," } else { "" });
        out.push(close);
    } else {
        // Writing to a string does not fail.
        let _ = write!(out, "{value}");
    }
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
fn quote(out: &mut String, text: &str) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == mark => out.extend(['\\', c]),
            c if c == ' ' || !(c.is_other() || c.is_separator()) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xFF => write!(out, "\\x{code:02x}"),
                    0x100..=0xFFFF => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(mark);
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
        assert_eq!(str_of(&list), r#"["it's", 'a"\'\n\x7fé\u200b', True, None]"#);
        let map = Value::from_pairs([("k", Value::from(1.0)), ("l", Value::from(vec![1, 2]))]);
        assert_eq!(str_of(&map), "{'k': 1.0, 'l': [1, 2]}");
        assert_eq!(str_of(&Value::UNDEFINED), "");
    }
}
