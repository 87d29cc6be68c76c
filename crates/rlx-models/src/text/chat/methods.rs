//! Methods of Python's texts, lists and dicts.

use minijinja::formatting::FormatStyle;
use minijinja::value::{Rest, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::python::{MAX_TEXT_BYTES, str_of, too_long};
use super::tests_and_filters::joined;

/// The method `method` of `value`: those that are not with `pycompat` or differ there, then its own.
pub(super) fn call(state: &mut State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let own = match (value.kind(), value.as_str()) {
        (_, Some(text)) => text_method(text, method, args)?,
        (ValueKind::Map, _) if method == "copy" => Some(value.clone()),
        (ValueKind::Seq, _) => list_method(value, method, args)?,
        _ => None,
    };
    match own {
        Some(result) => Ok(result),
        None => pycompat::unknown_method_callback(state, value, method, args),
    }
}

fn text_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let result = match method {
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "partition" => {
            let (separator,): (&str,) = from_args(args)?;
            let parts = match text.split_once(separator) {
                Some((before, after)) => [before, separator, after],
                None => [text, "", ""],
            };
            Value::from(Tuple::from(parts.map(Value::from).to_vec()))
        }
        "rpartition" => {
            let (separator,): (&str,) = from_args(args)?;
            let parts = match text.rsplit_once(separator) {
                Some((before, after)) => [before, separator, after],
                None => ["", "", text],
            };
            Value::from(Tuple::from(parts.map(Value::from).to_vec()))
        }
        "rsplit" => {
            let (separator, most): (Option<&str>, Option<i64>) = from_args(args)?;
            rsplit(text, separator, most).into_iter().collect()
        }
        "index" => {
            let (what,): (&str,) = from_args(args)?;
            let Some(at) = text.find(what) else { return Err(error("substring not found")) };
            Value::from(text[..at].chars().count())
        }
        "zfill" => {
            let (width,): (usize,) = from_args(args)?;
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
            Value::from(format!("{sign}{}{digits}", fill(text, width, "0")?))
        }
        "ljust" | "rjust" | "center" => {
            let (width, with): (usize, Option<&str>) = from_args(args)?;
            let padding = fill(text, width, with.unwrap_or(" "))?;
            let left = padding.chars().count() / 2 + (padding.chars().count() & width & 1);
            Value::from(match method {
                "ljust" => format!("{text}{padding}"),
                "rjust" => format!("{padding}{text}"),
                _ => {
                    let left: String = padding.chars().take(left).collect();
                    format!("{left}{text}{}", &padding[left.len()..])
                }
            })
        }
        "join" => {
            let (items,): (Value,) = from_args(args)?;
            Value::from(joined(items.try_iter()?.map(|item| str_of(&item)), text)?)
        }
        "format" => Value::from(format(FormatStyle::StrFormat, text, args)?),
        _ => return Ok(None),
    };
    Ok(Some(result))
}

/// `text` with the arguments filled in, unless that could be too long: its size is known before only as a bound.
pub(super) fn format(style: FormatStyle, text: &str, args: &[Value]) -> Result<String, Error> {
    let (mark, before_widths) = if style == FormatStyle::Printf { ('%', '%') } else { ('{', ':') };
    let fields = text.matches(mark).count();
    // A star takes a width from the arguments.
    let mut widths = 0usize;
    for (at, _) in text.match_indices(before_widths) {
        widths = widths.saturating_add(widths_of(&text[at + 1..]));
    }
    let mut longest = 0;
    for arg in args {
        longest = longest.max(str_of(arg)?.len());
        if style == FormatStyle::Printf && text.contains('*') {
            widths = widths.saturating_add(arg.as_usize().unwrap_or(0));
        }
    }
    // A character that fills, or a zero, has up to four bytes.
    let bound = widths.saturating_mul(4).saturating_add(fields.saturating_mul(longest));
    if bound.saturating_add(text.len()) > MAX_TEXT_BYTES {
        return Err(too_long());
    }
    minijinja::formatting::format(style, text, args)
}

/// Width and precision together at the start of a field's end: `[key][fill][align][flags][width][,][.precision]`.
fn widths_of(field: &str) -> usize {
    let field = match field.strip_prefix('(') {
        Some(keyed) => keyed.split_once(')').map_or(keyed, |(_, rest)| rest),
        None => field,
    };
    let mut chars = field.chars();
    let aligned = matches!((chars.next(), chars.next()), (Some(_), Some('<' | '>' | '^' | '=')));
    let field = if aligned { chars.as_str() } else { field };
    let field = field.trim_start_matches(['<', '>', '^', '=', '+', '-', ' ', '#', 'z']);
    let number = |text: &str| match text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()) {
        0 => 0,
        len => text[..len].parse().unwrap_or(usize::MAX),
    };
    let rest = field.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches([',', '_']);
    number(field).saturating_add(rest.strip_prefix('.').map_or(0, number))
}

fn list_method(list: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    match method {
        "copy" => Ok(Some(list.clone())),
        "index" => {
            let (what, _more): (Value, Rest<Value>) = from_args(args)?;
            match list.try_iter()?.position(|item| item == what) {
                Some(at) => Ok(Some(Value::from(at))),
                None => Err(error(&format!("{} is not in the list", str_of(&what)?))),
            }
        }
        _ => Ok(None),
    }
}

/// The parts of a text, cut at most `most` times from the right; without a separator at white space.
fn rsplit(text: &str, separator: Option<&str>, most: Option<i64>) -> Vec<String> {
    let most = most.filter(|&n| n >= 0).map_or(usize::MAX, |n| n as usize);
    let mut parts: Vec<String> = Vec::new();
    let mut rest = text;
    if separator.is_none() {
        rest = rest.trim_end();
    }
    while parts.len() < most {
        let cut = match separator {
            Some(separator) => rest.rsplit_once(separator),
            None => rest
                .char_indices()
                .rev()
                .find(|(_, c)| c.is_whitespace())
                .map(|(at, c)| (rest[..at].trim_end(), &rest[at + c.len_utf8()..])),
        };
        let Some((before, after)) = cut else { break };
        parts.push(after.to_owned());
        rest = before;
    }
    if separator.is_some() || !rest.is_empty() {
        parts.push(rest.to_owned());
    }
    parts.reverse();
    parts
}

/// What fills `text` up to `width` characters.
fn fill(text: &str, width: usize, with: &str) -> Result<String, Error> {
    const MAX_WIDTH: usize = 1 << 16;
    if width > MAX_WIDTH || with.chars().count() != 1 {
        return Err(error("a width of 65536 at most and one character to fill with are asked for"));
    }
    Ok(with.repeat(width.saturating_sub(text.chars().count())))
}

fn error(message: &str) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.to_owned())
}
