//! A text as tokens.

/// Signs of several characters that are not to be taken for pointers, references or brackets of templates.
const JOINED: [&str; 12] = ["->", "&&", "&=", "*=", "<=", ">=", "==", "!=", "+=", "-=", "||", "::"];

/// Words, numbers and signs, without comments.
pub fn tokens(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let second = rest[first.len_utf8()..].chars().next().unwrap_or(' ');
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first.is_ascii_digit() || first == '.' && second.is_ascii_digit() {
            number(rest)
        } else if first.is_alphabetic() || first == '_' {
            rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
        } else if JOINED.iter().any(|sign| rest.starts_with(sign)) {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        if !first.is_whitespace() && !token.starts_with("//") {
            out.push(token);
        }
        rest = after;
    }
    out
}

/// The length of the number that `text` begins with, suffixes and signs of exponents included.
fn number(text: &str) -> usize {
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let exponent = matches!(before, 'p' | 'P') || !hexadecimal && matches!(before, 'e' | 'E');
        let goes_on =
            c.is_ascii_alphanumeric() || c == '.' || c == '\'' || exponent && matches!(c, '+' | '-');
        if !goes_on {
            return at;
        }
        before = c;
    }
    text.len()
}

/// Whether a token is a name or a keyword.
pub fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether a token is a number.
pub fn is_number(token: &str) -> bool {
    token.starts_with(|c: char| c.is_ascii_digit()) || token.len() > 1 && token.starts_with('.')
}

/// The place of the `<` that the `>` at `close` belongs to.
pub fn template_start(tokens: &[&str], close: usize) -> Option<usize> {
    let mut open = 0;
    for at in (0..=close).rev() {
        match tokens[at] {
            ">" => open += 1,
            "<" if open == 1 => return Some(at),
            "<" => open -= 1,
            ";" | "{" | "}" => return None,
            _ => {}
        }
    }
    None
}

/// The place behind the bracket that closes the one at `open`; the end where none does.
pub fn after_close(tokens: &[&str], open: usize) -> usize {
    let close = match tokens[open] {
        "(" => ")",
        "[" => "]",
        "{" => "}",
        _ => ">",
    };
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if *token == tokens[open] {
            depth += 1;
        } else if *token == close {
            depth -= 1;
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}
