//! What MSL has not, or the dialect forbids, found by reading tokens.

mod cases;
mod pointers;
mod recursion;
mod scope;
mod tokens;
mod types;

use tokens::{is_number, tokens};
use types::Names;

/// Words that no kernel may use, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("double", "MSL has no double"),
    ("try", "MSL has no exceptions"),
    ("catch", "MSL has no exceptions"),
    ("throw", "MSL has no exceptions"),
    ("new", "MSL has no heap"),
    ("delete", "MSL has no heap"),
    ("virtual", "MSL has no virtual functions"),
    ("goto", "MSL has no goto"),
    ("static", "mutable statics do not exist, constants are `constant`"),
    ("thread_local", "MSL has no thread-local variables"),
    ("dynamic_cast", "MSL has no type information"),
    ("typeid", "MSL has no type information"),
    ("extern", "variables of others do not exist"),
    ("reinterpret_cast", "pointers are not cast"),
    ("static_cast", "pointers are not cast"),
    ("const_cast", "pointers are not cast"),
    ("std", "MSL has no standard library"),
    ("using", "a type goes by its own name"),
    ("typedef", "a type goes by its own name"),
    ("decltype", "a type goes by its own name"),
    ("namespace", "names are those of one text"),
    ("auto", "a type names its address space"),
    ("operator", "device and constant structs have no methods"),
    ("this", "device and constant structs have no methods"),
    ("printf", "MSL has no printf"),
    ("asm", "assembly is the header's business"),
    ("kernel", "entry points come from the manifest"),
    ("__global__", "entry points come from the manifest"),
    ("__shared__", "threadgroup memory is a parameter"),
];

/// Everything in `text` that breaks the rules.
pub fn findings(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut code = String::new();
    for line in text.lines() {
        match line.trim_start().strip_prefix('#') {
            Some(directive) => preprocessor(directive, &mut found),
            None => code.extend([line, "\n"]),
        }
    }
    let tokens = tokens(&code);
    for at in 0..tokens.len() {
        word(tokens[at], &mut found);
        if tokens[at] == "/" && tokens.get(at + 1) == Some(&"*") {
            found.push("/*: comments begin with //".to_owned());
        }
    }
    let names = Names::new(&tokens);
    pointers::check(&tokens, &names, &mut found);
    scope::check(&tokens, &names, &mut found);
    recursion::check(&tokens, &mut found);
    found
}

/// Words that are forbidden, and literals of a type that is.
fn word(token: &str, found: &mut Vec<String>) {
    if let Some((word, why)) = FORBIDDEN.iter().find(|(w, _)| *w == token) {
        found.push(format!("{word}: {why}"));
    }
    let hexadecimal = token.starts_with("0x") || token.starts_with("0X");
    let float = if hexadecimal { token.contains(['.', 'p', 'P']) } else { token.contains(['.', 'e', 'E']) };
    if is_number(token) && float && !token.ends_with('f') {
        found.push(format!("{token}: without f it is a double elsewhere"));
    }
}

/// A line of the preprocessor, which names a constant.
fn preprocessor(directive: &str, found: &mut Vec<String>) {
    let tokens = tokens(directive);
    let constant = directive.starts_with("define ")
        && tokens.len() > 2
        && !directive.contains(&format!("{}(", tokens[1]));
    if !constant {
        found.push(format!("#{directive}: a source has no lines of the preprocessor but constants"));
    }
    for token in tokens {
        word(token, found);
    }
}
