//! Tests, filters and functions whose meaning in Jinja is not that of the engine, or that it lacks.

use std::fmt::Write;

use minijinja::formatting::FormatStyle;
use minijinja::value::{Kwargs, Rest, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, Output, State};

use super::json_dumps::tojson;
use super::methods;
use super::python::{Text, str_of, too_long};

/// Adds all of them.
pub(super) fn add_to(env: &mut Environment<'static>) {
    env.set_formatter(|out: &mut Output, _: &mut State, value: &Value| match value.as_str() {
        Some(text) => Ok(out.write_str(text)?),
        None => Ok(out.write_str(&str_of(value)?)?),
    });
    env.add_filter("tojson", tojson);
    env.add_filter("string", |value: &Value| str_of(value));
    env.add_filter("join", join);
    env.add_filter("trim", trim);
    env.add_filter("format", format_filter);
    env.add_filter("length", length);
    env.add_filter("count", length);
    env.add_filter("items", items);
    env.add_filter("int", int);
    env.add_filter("float", float);
    // A text is a sequence of characters, and so is a dict of its keys.
    env.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String | ValueKind::Undefined)
    });
    env.add_test("iterable", |value: &Value| {
        value.is_undefined() || value.as_str().is_some() || value.try_iter().is_ok() && !value.is_none()
    });
    env.add_test("number", |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool));
    env.add_function("raise_exception", |message: &Value| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, str_of(message)?).with_source(Raised))
    });
}

/// Marks an error that a template raised itself.
#[derive(Debug)]
pub(super) struct Raised;

impl std::fmt::Display for Raised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("raise_exception")
    }
}

impl std::error::Error for Raised {}

#[allow(clippy::needless_pass_by_value)] // the engine hands arguments over so
fn join(values: &Value, positional: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let named = |name, at: usize| -> Result<Option<Value>, Error> {
        Ok(kwargs.get::<Option<Value>>(name)?.or_else(|| positional.get(at).cloned()))
    };
    let separator = named("d", 0)?.map(|v| str_of(&v)).transpose()?.unwrap_or_default();
    let attribute = named("attribute", 1)?.filter(|v| !v.is_none());
    kwargs.assert_all_used()?;
    if values.is_undefined() {
        return Ok(String::new());
    }
    let texts = values.try_iter()?.map(|value| match &attribute {
        Some(name) => str_of(&value.get_item(name)?),
        None => str_of(&value),
    });
    joined(texts, &separator)
}

/// The texts with `separator` between them; an error where that is too long.
pub(super) fn joined(
    texts: impl Iterator<Item = Result<String, Error>>,
    separator: &str,
) -> Result<String, Error> {
    let mut out = Text::default();
    for (at, text) in texts.enumerate() {
        let between = if at > 0 { separator } else { "" };
        let text = text?;
        if out.write_str(between).and_then(|()| out.write_str(&text)).is_err() {
            return Err(too_long());
        }
    }
    Ok(out.0)
}

fn trim(value: &Value, chars: Option<&str>) -> Result<String, Error> {
    let text = str_of(value)?;
    Ok(match chars {
        Some(chars) => text.trim_matches(|c| chars.contains(c)).to_owned(),
        None => text.trim().to_owned(),
    })
}

/// `text % arguments`.
#[allow(clippy::needless_pass_by_value)] // the engine hands arguments over so
fn format_filter(text: &Value, arguments: Rest<ValueOrKwargs>) -> Result<String, Error> {
    let Some(text) = text.as_str() else {
        return Err(Error::new(ErrorKind::InvalidOperation, "format: only a text can be filled in"));
    };
    methods::format(FormatStyle::Printf, text, &arguments.into_values())
}

fn length(state: &State, value: &Value) -> Result<usize, Error> {
    match value.len() {
        Some(len) => Ok(len),
        None if value.is_undefined() => Ok(0),
        None => match value.kind() {
            ValueKind::Iterable => {
                let mut len = 0;
                for _ in value.try_iter()? {
                    state.consume_fuel(1)?;
                    len += 1;
                }
                Ok(len)
            }
            kind => {
                Err(Error::new(ErrorKind::InvalidOperation, format!("a value of type {kind} has no length")))
            }
        },
    }
}

fn items(state: &mut State, value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Ok(Value::from(Vec::<Value>::new()));
    }
    if value.kind() != ValueKind::Map {
        return Err(Error::new(ErrorKind::InvalidOperation, "items: only a mapping has them"));
    }
    value.call_method(state, "items", &[])
}

/// What is no number is the default, 0.
fn int(value: &Value, default: Option<i64>, base: Option<u32>) -> Result<Value, Error> {
    let other = || Value::from(default.unwrap_or(0));
    if let Some(text) = value.as_str() {
        let base = base.unwrap_or(10);
        if !(2..=36).contains(&base) {
            return Err(Error::new(ErrorKind::InvalidOperation, format!("int: no base {base}")));
        }
        let whole = i64::from_str_radix(&text.trim().replace('_', ""), base).ok();
        let cut = || text.trim().parse::<f64>().ok().filter(|f| f.is_finite()).map(|f| f as i64);
        return Ok(whole.or_else(cut).map_or_else(other, Value::from));
    }
    Ok(match value.kind() {
        ValueKind::Bool => Value::from(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => value.clone(),
        ValueKind::Number => f64::try_from(value.clone()).map_or_else(|_| other(), |f| Value::from(f as i64)),
        _ => other(),
    })
}

/// What is no number is the default, 0.0.
fn float(value: &Value, default: Option<f64>) -> f64 {
    let number = match (value.as_str(), value.kind()) {
        (Some(text), _) => text.trim().parse().ok(),
        (None, ValueKind::Bool) => Some(f64::from(u8::from(value.is_true()))),
        (None, ValueKind::Number) => f64::try_from(value.clone()).ok(),
        _ => None,
    };
    number.or(default).unwrap_or(0.0)
}
