//! Pointers and references: each names its address space, none is cast, and none is to a function.

use super::tokens::{after_close, is_word, template_start};
use super::types::Names;

const SPACES: [&str; 4] = ["device", "constant", "threadgroup", "thread"];

/// Whether the sign at `at` declares a pointer or a reference, and is no product, no `and` and no address.
fn declares(tokens: &[&str], names: &Names<'_>, at: usize, parameter: bool) -> bool {
    if !["*", "&", "&&"].contains(&tokens[at]) || at == 0 {
        return false;
    }
    let (before, after) = (tokens[at - 1], tokens.get(at + 1).copied().unwrap_or(""));
    if names.type_ends(tokens, at - 1) || SPACES.contains(&before) || [")", ",", ">", "]"].contains(&after) {
        return true;
    }
    let operand = is_word(before) || before == ">";
    // A product alone is no statement.
    let statement = at < 2 || ["{", "}", ";", "const"].contains(&tokens[at - 2]);
    let pointer_to_pointer = ["*", "&"].contains(&before) && declares(tokens, names, at - 1, parameter);
    operand && (parameter || statement && is_word(after) && before != "return") || pointer_to_pointer
}

/// Whether the declaration that the sign at `at` is part of names a space for it.
fn has_space(tokens: &[&str], at: usize) -> bool {
    let mut place = at;
    while place > 0 {
        place -= 1;
        match tokens[place] {
            word if SPACES.contains(&word) => return true,
            ">" => match template_start(tokens, place) {
                Some(open) => place = open,
                None => return false,
            },
            word if is_word(word) || word == "::" => {}
            _ => return false,
        }
    }
    false
}

pub fn check(tokens: &[&str], names: &Names<'_>, found: &mut Vec<String>) {
    let (mut braces, mut parentheses) = (0usize, 0usize);
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" => braces += 1,
            "}" => braces = braces.saturating_sub(1),
            "(" => {
                parentheses += 1;
                function(tokens, at, found);
                let before = at.checked_sub(1).map_or("", |before| tokens[before]);
                if braces == 0 && parentheses > 1 && before != "sizeof" {
                    found.push(format!("{before}(: a pointer to a function"));
                }
            }
            ")" => parentheses = parentheses.saturating_sub(1),
            "template" if tokens.get(at + 1) == Some(&"<") => {
                let header = &tokens[at..after_close(tokens, at + 1)];
                if header.contains(&"(") {
                    found.push(format!("{}: a pointer to a function", header.join(" ")));
                }
            }
            _ => {}
        }
        if !declares(tokens, names, at, braces == 0 && parentheses > 0) {
            continue;
        }
        if !has_space(tokens, at) {
            found.push(format!("{}{token}: a pointer without an address space", tokens[at - 1]));
        }
        // Parameters lie outside of braces; within them, only a cast has nothing behind the star.
        let rest = tokens[at + 1..].iter().find(|t| !["*", "&", "&&", "const"].contains(t));
        if braces > 0 && rest == Some(&")") {
            let open = tokens[..at].iter().rposition(|t| *t == "(").unwrap_or(0);
            found.push(format!("{}): a cast of a pointer", tokens[open..=at].join(" ")));
        }
    }
}

/// `(*name)(` and the like at the parenthesis at `open`.
fn function(tokens: &[&str], open: usize, found: &mut Vec<String>) {
    let close = after_close(tokens, open);
    let inside = &tokens[open + 1..close.max(open + 2) - 1];
    let sign = inside.iter().position(|t| !SPACES.contains(t)).map_or("", |first| inside[first]);
    let condition = open > 0 && ["if", "while", "for", "switch"].contains(&tokens[open - 1]);
    let name = inside.iter().all(|t| ["*", "&", "&&"].contains(t) || is_word(t));
    if ["*", "&", "&&"].contains(&sign) && name && !condition && tokens.get(close) == Some(&"(") {
        found.push(format!("({}): a pointer to a function", inside.join("")));
    }
}
