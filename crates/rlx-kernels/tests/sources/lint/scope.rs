//! What may stand where: variables outside of functions are constants, structs have no methods, arrays have sizes.

use super::tokens::{after_close, is_number, is_word};
use super::types::Names;

/// What stands outside of functions and structs.
pub fn check(tokens: &[&str], names: &Names<'_>, found: &mut Vec<String>) {
    let mut at = 0;
    while at < tokens.len() {
        let start = skip_template(tokens, at);
        let mut end = start;
        let (mut parameters, mut body) = (None, None);
        // A declaration ends with a semicolon, a function with its body.
        while end < tokens.len() && tokens[end] != ";" {
            match tokens[end] {
                "(" => {
                    parameters = parameters.or(Some(end));
                    end = after_close(tokens, end);
                }
                "{" => {
                    body = Some(end);
                    end = after_close(tokens, end);
                    if parameters.is_some() && !tokens[start..end].contains(&"=") {
                        break;
                    }
                }
                _ => end += 1,
            }
        }
        let head = tokens.get(start).copied().unwrap_or("");
        let declared = &tokens[start..end];
        if ["struct", "class", "union", "enum"].contains(&head) {
            record(tokens, start, body, end, found);
        } else if variable(tokens, names, declared, start, parameters) && head != "static_assert" {
            found.push(format!("{}: a variable outside of functions is `constant`", declared.join(" ")));
        }
        at = if tokens.get(end) == Some(&";") { end + 1 } else { end.max(at + 1) };
    }
    sizes(tokens, names, found);
}

fn skip_template(tokens: &[&str], mut at: usize) -> usize {
    while tokens.get(at) == Some(&"template") && tokens.get(at + 1) == Some(&"<") {
        at = after_close(tokens, at + 1);
    }
    at
}

/// Whether a declaration is that of a variable which is not `constant`.
fn variable(
    tokens: &[&str],
    names: &Names<'_>,
    declared: &[&str],
    start: usize,
    parameters: Option<usize>,
) -> bool {
    if declared.is_empty() {
        return false;
    }
    let before_value =
        declared.iter().position(|t| ["=", "{", "(", "["].contains(t)).unwrap_or(declared.len());
    if declared[..before_value].contains(&"constant") {
        return false;
    }
    match parameters {
        // A value in parentheses is no list of parameters.
        Some(open) if open == start + before_value => {
            let first = tokens.get(open + 1).copied().unwrap_or("");
            let value = is_number(first) || ["true", "false", "-"].contains(&first);
            value
                || is_word(first) && first == first.to_uppercase() && first.len() > 1 && !names.is_type(first)
        }
        _ => true,
    }
}

/// A struct: no methods, and no variable behind it.
fn record(tokens: &[&str], start: usize, body: Option<usize>, end: usize, found: &mut Vec<String>) {
    let name = tokens.get(start + 1).copied().unwrap_or("");
    let Some(open) = body else {
        if end > start + 2 {
            found.push(format!(
                "{}: a variable outside of functions is `constant`",
                tokens[start..end].join(" ")
            ));
        }
        return;
    };
    let close = after_close(tokens, open);
    if tokens[open..close].contains(&"(") {
        found.push(format!("{name}: structs have no methods"));
    }
    if close < end {
        found
            .push(format!("{}: a variable outside of functions is `constant`", tokens[close..end].join(" ")));
    }
}

/// Arrays whose sizes are not known when they are compiled.
fn sizes(tokens: &[&str], names: &Names<'_>, found: &mut Vec<String>) {
    for at in 1..tokens.len().saturating_sub(1) {
        if !is_word(tokens[at]) || tokens[at + 1] != "[" || !names.type_ends(tokens, at - 1) {
            continue;
        }
        let mut open = at + 1;
        while tokens.get(open) == Some(&"[") {
            let close = after_close(tokens, open);
            if let Some(name) = names.unfixed(&tokens[open + 1..close.max(open + 2) - 1]) {
                found.push(format!("{}[{name}]: an array of variable length", tokens[at]));
            }
            open = close;
        }
    }
}
