//! Which names of a text are types, and which are constants.

use std::collections::BTreeSet;

use super::tokens::{after_close, is_word, template_start};

/// Types of the dialect without the number of their elements.
const TYPES: [&str; 14] = [
    "void",
    "bool",
    "char",
    "short",
    "int",
    "long",
    "uchar",
    "ushort",
    "uint",
    "ulong",
    "half",
    "float",
    "size_t",
    "simd_matrix",
];

/// Words that may stand behind the type that they belong to.
const QUALIFIERS: [&str; 2] = ["const", "volatile"];

/// Names that a text declares.
pub struct Names<'a> {
    types: BTreeSet<&'a str>,
    constants: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    pub fn new(tokens: &[&'a str]) -> Self {
        let mut names = Self { types: BTreeSet::new(), constants: BTreeSet::new() };
        for at in 0..tokens.len() {
            let next = tokens.get(at + 1).copied().unwrap_or("");
            match tokens[at] {
                "typename" | "class" | "struct" | "enum" | "union" if is_word(next) => {
                    names.types.insert(next);
                }
                "template" if next == "<" => {
                    let parameters = &tokens[at + 2..after_close(tokens, at + 1)];
                    let last = |list: &[&'a str]| list.last().copied().unwrap_or("");
                    names.constants.extend(parameters.split(|t| [",", ">", "="].contains(t)).map(last));
                }
                "=" => {
                    // A constant whose value is made of constants.
                    let name = at.checked_sub(1).map_or("", |before| tokens[before]);
                    let start = tokens[..at].iter().rposition(|t| [";", "{", "}", ")"].contains(t));
                    let head = &tokens[start.map_or(0, |s| s + 1)..at];
                    let end = tokens[at..].iter().position(|t| *t == ";").map_or(tokens.len(), |e| at + e);
                    let fixed = head.iter().any(|t| ["const", "constexpr", "constant"].contains(t));
                    if fixed && names.unfixed(&tokens[at + 1..end]).is_none() {
                        names.constants.insert(name);
                    }
                }
                _ => {}
            }
        }
        names
    }

    /// Whether a word is a type. Types of other files go by the house's way of writing: `AttentionKeys`.
    pub fn is_type(&self, word: &str) -> bool {
        let scalar = word.trim_end_matches(['2', '3', '4']);
        let house = word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.contains(|c: char| c.is_ascii_lowercase());
        TYPES.contains(&word) || TYPES.contains(&scalar) || house || self.types.contains(word)
    }

    /// Whether what ends at `at` is a type: its name, its template arguments, or `const` behind either.
    pub fn type_ends(&self, tokens: &[&str], at: usize) -> bool {
        match tokens[at] {
            word if QUALIFIERS.contains(&word) => at > 0 && self.type_ends(tokens, at - 1),
            ">" => template_start(tokens, at).is_some_and(|open| open > 0 && self.is_type(tokens[open - 1])),
            word => self.is_type(word),
        }
    }

    /// The first name of an expression that is not known when it is compiled. Constants of other files are written in capitals.
    pub fn unfixed<'b>(&self, expression: &[&'b str]) -> Option<&'b str> {
        let capitals = |t: &str| t.len() > 1 && !t.contains(|c: char| c.is_ascii_lowercase());
        let fixed = |t: &str| t == "sizeof" || capitals(t) || self.is_type(t) || self.constants.contains(t);
        expression.iter().copied().find(|t| is_word(t) && !fixed(t))
    }
}
