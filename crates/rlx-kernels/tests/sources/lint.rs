//! What MSL has not, or the dialect forbids, found by reading tokens.

use std::collections::{BTreeMap, BTreeSet};

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
    ("reinterpret_cast", "pointers are not cast"),
    ("const_cast", "pointers are not cast"),
    ("std", "MSL has no standard library"),
    ("auto", "a type names its address space"),
    ("operator", "device and constant structs have no methods"),
    ("this", "device and constant structs have no methods"),
    ("printf", "MSL has no printf"),
    ("asm", "assembly is the header's business"),
    ("kernel", "entry points come from the manifest"),
    ("__global__", "entry points come from the manifest"),
    ("__shared__", "threadgroup memory is a parameter"),
    ("include", "what a source uses is said in the list of sources"),
];

const SPACES: [&str; 4] = ["device", "constant", "threadgroup", "thread"];

/// Text without comments and strings.
fn code(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        assert!(!line.contains("/*"), "comments begin with //: {line}");
        out.push_str(line.split("//").next().unwrap_or(""));
        out.push('\n');
    }
    out
}

fn tokens(code: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in code.chars() {
        if c.is_alphanumeric() || c == '_' || c == '.' && word.starts_with(|w: char| w.is_ascii_digit()) {
            word.push(c);
            continue;
        }
        // The sign of an exponent.
        if (c == '-' || c == '+') && word.starts_with(|w: char| w.is_ascii_digit()) && word.ends_with('e') {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            out.push(std::mem::take(&mut word));
        }
        // A star that follows its type at once declares a pointer: the house writes `T* x` and `a * b`.
        out.push(c.to_string());
    }
    out
}

/// Everything in `text` that breaks the rules.
pub fn findings(text: &str) -> Vec<String> {
    let code = code(text);
    let spaced = tokens(&code);
    let plain: Vec<&str> = spaced.iter().map(String::as_str).filter(|t| !t.trim().is_empty()).collect();
    let mut found = Vec::new();
    for token in &plain {
        if let Some((word, why)) = FORBIDDEN.iter().find(|(w, _)| w == token) {
            found.push(format!("{word}: {why}"));
        }
        let number = token.starts_with(|c: char| c.is_ascii_digit()) && !token.starts_with("0x");
        if number && token.contains(['.', 'e']) && !token.ends_with('f') {
            found.push(format!("{token}: without f it is a double elsewhere"));
        }
    }
    pointers(&spaced, &mut found);
    casts(&plain, &mut found);
    recursion(&plain, &mut found);
    found
}

/// Pointers and references without an address space, and pointers to functions.
fn pointers(spaced: &[String], found: &mut Vec<String>) {
    for (i, token) in spaced.iter().enumerate() {
        let before = i.checked_sub(1).map_or("", |b| spaced[b].as_str());
        let after = spaced.get(i + 1).map_or("", String::as_str);
        let attached = before.ends_with(|c: char| c.is_alphanumeric() || c == '_') || before == ">";
        let declares = attached && (token == "*" || token == "&") && after == " ";
        if declares {
            // Back to where this declaration begins.
            let words = spaced[..i]
                .iter()
                .rev()
                .take_while(|t| !["(", ",", ";", "{", "}", "\n"].contains(&t.as_str()));
            if !words.into_iter().any(|t| SPACES.contains(&t.as_str())) {
                found.push(format!("{before}{token}: a pointer without an address space"));
            }
        }
        if token == "(" && after == "*" {
            let name = spaced.get(i + 2).map_or("", String::as_str);
            let close = spaced.get(i + 3).map_or("", String::as_str);
            let call = spaced.get(i + 4).map_or("", String::as_str);
            if close == ")" && call == "(" {
                found.push(format!("(*{name}): a pointer to a function"));
            }
        }
    }
}

/// Casts to pointers: nothing changes its address space or its type.
fn casts(plain: &[&str], found: &mut Vec<String>) {
    for (i, token) in plain.iter().enumerate() {
        if *token != "(" || !plain.get(i + 1).is_some_and(|t| SPACES.contains(t)) {
            continue;
        }
        let close = plain[i..].iter().position(|t| *t == ")").unwrap_or(0);
        // Parameters have names after their types; a cast ends with the star.
        if close > 0 && plain[i + close - 1] == "*" {
            found.push(format!("{}: a cast of a pointer", plain[i..=i + close].join(" ")));
        }
    }
}

/// Functions that reach themselves. Overloads count as one.
fn recursion(plain: &[&str], found: &mut Vec<String>) {
    let mut calls: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let (mut depth, mut current, mut candidate) = (0usize, None, None);
    let mut parentheses = 0usize;
    for (i, token) in plain.iter().enumerate() {
        match *token {
            "(" => {
                let name = i.checked_sub(1).map(|b| plain[b]);
                if depth == 0 && parentheses == 0 {
                    candidate = name;
                } else if let (Some(current), Some(name)) = (current, name) {
                    calls.entry(current).or_default().insert(name);
                }
                parentheses += 1;
            }
            ")" => parentheses = parentheses.saturating_sub(1),
            "{" => {
                if depth == 0 {
                    current = candidate.take();
                }
                depth += 1;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    current = None;
                }
            }
            ";" if depth == 0 => candidate = None,
            _ => {}
        }
    }
    for &name in calls.keys() {
        let mut reached = BTreeSet::new();
        let mut open = vec![name];
        while let Some(next) = open.pop() {
            for &called in calls.get(next).into_iter().flatten() {
                if reached.insert(called) {
                    open.push(called);
                }
            }
        }
        if reached.contains(name) {
            found.push(format!("{name}: recursion"));
        }
    }
}

#[test]
fn each_rule_finds_what_breaks_it() {
    let cases = [
        ("inline double f(float x) { return x; }", "double"),
        ("inline float f(float x) { return x * 0.5; }", "0.5"),
        ("inline float f(float x) { return x * 1e-3; }", "1e-3"),
        ("inline float f(float* x) { return x[0]; }", "float*"),
        ("inline float f(device const float* x, const half* y) { return x[0]; }", "half*"),
        ("inline void f(float& x) { x = 0.0f; }", "float&"),
        ("inline float f(device float* x) { return *((device half*)x); }", "a cast"),
        ("inline float f(threadgroup float* x) { return g((device const float*)x); }", "a cast"),
        ("inline uint f(uint n) { return n == 0 ? 0 : f(n - 1); }", "f: recursion"),
        (
            "inline uint g(uint n);\ninline uint f(uint n) { return g(n); }\ninline uint g(uint n) { return f(n); }",
            "recursion",
        ),
        ("inline void f(float (*g)(float)) {}", "a pointer to a function"),
        ("static float kept;", "static"),
        ("inline void f() { try { g(); } catch (int) {} }", "exceptions"),
        ("inline void f() { float x = std::exp(1.0f); }", "std"),
    ];
    for (text, expected) in cases {
        let found = findings(text);
        assert!(found.iter().any(|f| f.contains(expected)), "{text}: {found:?}");
    }
    let right = "// 0.5 is a double\ninline float f(device const float* x, thread half& y, uint a, uint b) {\n  y = half(0.5f);\n  \
                 return x[a * b] * 1e-3f;\n}\n";
    assert_eq!(findings(right), Vec::<String>::new());
}
