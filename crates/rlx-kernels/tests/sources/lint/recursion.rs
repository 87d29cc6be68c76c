//! Functions that reach themselves. Overloads count as one.

use std::collections::{BTreeMap, BTreeSet};

use super::tokens::{is_word, template_start};

pub fn check(tokens: &[&str], found: &mut Vec<String>) {
    let mut calls: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let (mut depth, mut current, mut candidate) = (0usize, None, None);
    let mut parentheses = 0usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" => {
                let name = called(tokens, at);
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

/// The name before the parenthesis at `open`, past template arguments.
fn called<'a>(tokens: &[&'a str], open: usize) -> Option<&'a str> {
    let mut end = open.checked_sub(1)?;
    if tokens[end] == ">" {
        end = template_start(tokens, end)?.checked_sub(1)?;
    }
    Some(tokens[end]).filter(|name| is_word(name))
}
