//! Comparing what came out with what was expected.

use super::case::{Case, Keyword};
use crate::{Error, Result};

/// Checks every expectation of `case`.
pub(super) fn check(case: &Case, output: &Result<String>) -> Result<()> {
    let errors: Vec<&str> = case.of(Keyword::Error).collect();
    let output = match (output, errors.is_empty()) {
        (Err(e), true) => return Err(e.clone()),
        (Err(e), false) => {
            return match errors.iter().find(|text| !e.message().contains(**text)) {
                None => Ok(()),
                Some(text) => fail(format!("the error should hold {text:?}")),
            };
        }
        (Ok(_), false) => return fail("an error was expected".to_owned()),
        (Ok(output), true) => output,
    };
    let lines: Vec<&str> = output.lines().collect();
    let mut next = 0;
    for text in case.of(Keyword::Check) {
        match lines[next..].iter().position(|l| l.contains(text)) {
            Some(i) => next += i + 1,
            None if lines.iter().any(|l| l.contains(text)) => {
                return fail(format!("no line below output line {next} holds {text:?}"));
            }
            None => return fail(format!("no line holds {text:?}")),
        }
    }
    for text in case.of(Keyword::Not) {
        if lines.iter().any(|l| l.contains(text)) {
            return fail(format!("a line holds {text:?}"));
        }
    }
    for directive in case.of(Keyword::Count) {
        let (n, text) = directive.split_once(' ').unwrap_or((directive, ""));
        let Ok(n) = n.parse::<usize>() else { return fail(format!("count: {directive}: no number")) };
        let found = lines.iter().filter(|l| l.contains(text.trim())).count();
        if found != n {
            return fail(format!("{found} lines hold {:?}, expected {n}", text.trim()));
        }
    }
    match &case.block {
        Some((_, expected)) if lines.iter().map(|l| l.trim_end()).ne(expected.iter().map(String::as_str)) => {
            fail(format!("the output differs from the block (BLESS=1 writes it):\n{}", expected.join("\n")))
        }
        None if case.command.first().is_some_and(|c| c != "run") && case.directives.is_empty() => {
            fail("the case expects nothing".to_owned())
        }
        _ => Ok(()),
    }
}

fn fail(message: String) -> Result<()> {
    Err(Error::new(rlx_ir::ErrorKind::InvalidArgument, message))
}

/// The file's `text` with the case's block replaced by `output`.
pub(super) fn bless(case: &Case, output: &str, text: &str) -> String {
    let Some((start, old)) = &case.block else { return text.to_owned() };
    let lines: Vec<&str> = text.lines().collect();
    let new = output.lines().map(|l| format!("// {l}").trim_end().to_owned());
    let kept = |range: &[&str]| range.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
    let mut out = kept(&lines[..*start]);
    out.extend(new);
    out.extend(kept(&lines[start + old.len()..]));
    out.join("\n") + "\n"
}
