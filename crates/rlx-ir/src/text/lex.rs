//! Words of the text form, with the line they are on.

use crate::error::{Error, Result};

/// One word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// `%name`
    Value(String),
    /// `@name`, or `@"name"` where it is no word.
    Name(String),
    /// A word: letters, digits, `_`, `.`; starts with a letter or `_`.
    Word(String),
    /// Without its sign.
    Int(u64),
    Float(f64),
    Text(String),
    /// One of `{ } ( ) [ ] , : = + - * /` and `<=`.
    Punct(&'static str),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(v) => write!(f, "%{v}"),
            Self::Name(n) => write!(f, "@{n}"),
            Self::Word(w) => f.write_str(w),
            Self::Int(i) => write!(f, "{i}"),
            Self::Float(v) => write!(f, "{v:?}"),
            Self::Text(t) => write!(f, "{t:?}"),
            Self::Punct(p) => f.write_str(p),
        }
    }
}

/// The digits of U+10FFFF.
const MAX_CODE_POINT_DIGITS: usize = 6;

const PUNCT: [&str; 15] = ["<=", "{", "}", "(", ")", "[", "]", ",", ":", "=", "+", "-", "*", "/", ";"];

fn begins(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn goes_on(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

/// Whether all of `name` can follow `%` or `@`.
pub(super) fn is_name(name: &str) -> bool {
    name.chars().all(goes_on)
}

/// Whether `name` is one word: what ops, attributes and symbols are called.
pub(crate) fn is_word(name: &str) -> bool {
    name.starts_with(begins) && is_name(name)
}

/// Splits `text` into tokens with their line numbers, from 1.
pub(super) fn lex(text: &str) -> Result<Vec<(Token, u32)>> {
    let mut out = Vec::new();
    let mut line = 1u32;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '\n' {
            line += 1;
        }
        if c.is_whitespace() {
            rest = &rest[c.len_utf8()..];
        } else if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else {
            let (token, used) = token(rest).map_err(|e| e.context(format!("line {line}")))?;
            line += rest[..used].matches('\n').count() as u32;
            out.push((token, line));
            rest = &rest[used..];
        }
    }
    Ok(out)
}

fn token(rest: &str) -> Result<(Token, usize)> {
    let word_len = |s: &str| s.find(|c| !goes_on(c)).unwrap_or(s.len());
    let first = rest.as_bytes()[0];
    match first {
        b'@' if rest[1..].starts_with('"') => match text(&rest[1..])? {
            (Token::Text(name), used) => Ok((Token::Name(name), used + 1)),
            (token, used) => Ok((token, used + 1)),
        },
        b'%' | b'@' => {
            let len = word_len(&rest[1..]);
            if len == 0 && first == b'%' {
                crate::bail!(InvalidArgument, "a name must follow {}", first as char);
            }
            let name = rest[1..=len].to_owned();
            Ok((if first == b'%' { Token::Value(name) } else { Token::Name(name) }, len + 1))
        }
        b'"' => text(rest),
        b'0'..=b'9' => number(rest),
        b if begins(b as char) => {
            let len = word_len(rest);
            Ok((Token::Word(rest[..len].to_owned()), len))
        }
        _ => match PUNCT.iter().find(|p| rest.starts_with(**p)) {
            Some(p) => Ok((Token::Punct(p), p.len())),
            None => {
                let c = rest.chars().next().unwrap_or(' ');
                crate::bail!(InvalidArgument, "unexpected character {c:?}")
            }
        },
    }
}

fn number(rest: &str) -> Result<(Token, usize)> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut len = digits(0);
    let mut is_float = false;
    if bytes.get(len) == Some(&b'.') {
        is_float = true;
        len += 1 + digits(len + 1);
    }
    if matches!(bytes.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            is_float = true;
            len += 1 + sign + exponent;
        }
    }
    let word = &rest[..len];
    let token =
        if is_float { word.parse().map(Token::Float).ok() } else { word.parse().map(Token::Int).ok() };
    match token {
        Some(t) => Ok((t, len)),
        None => crate::bail!(InvalidArgument, "{word} is no number that fits"),
    }
}

fn text(rest: &str) -> Result<(Token, usize)> {
    let mut out = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((Token::Text(out), at + 1)),
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(c @ ('"' | '\\')) => out.push(c),
                Some('u') => out.push(code_point(&mut chars)?),
                _ => crate::bail!(InvalidArgument, "unknown escape in a text"),
            },
            c => out.push(c),
        }
    }
    crate::bail!(InvalidArgument, "a text does not end")
}

/// What follows `\u`: one to six hex digits in braces.
fn code_point(chars: &mut impl Iterator<Item = (usize, char)>) -> Result<char> {
    let mut digits = String::new();
    if chars.next().is_some_and(|(_, c)| c == '{') {
        for (_, c) in chars.take(MAX_CODE_POINT_DIGITS + 1) {
            if c == '}' {
                let found = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                if let Some(c) = found.filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit())) {
                    return Ok(c);
                }
                break;
            }
            digits.push(c);
        }
    }
    crate::bail!(InvalidArgument, "a text has \\u, but no character's hex digits in braces after it")
}
