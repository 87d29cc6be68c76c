//! The parts of a filetest.

use crate::{Error, Result};

/// One case: a command, a text, and what is expected.
#[derive(Debug)]
pub(super) struct Case {
    /// The line of `// test:`, from 1.
    pub line: usize,
    /// The words of the command.
    pub command: Vec<String>,
    /// The case's lines, comments and all.
    pub text: String,
    /// Expectations and data in order: keyword, rest of the line.
    pub directives: Vec<(Keyword, String)>,
    /// The lines of the `expect:` block, and where it starts: the index of the line after `expect:` in the file.
    pub block: Option<(usize, Vec<String>)>,
}

/// What a comment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Check,
    Not,
    Count,
    Error,
    Input,
    State,
    Size,
    Output,
    StateAfter,
}

const KEYWORDS: &[(&str, Keyword)] = &[
    ("check:", Keyword::Check),
    ("not:", Keyword::Not),
    ("count:", Keyword::Count),
    ("error:", Keyword::Error),
    ("input:", Keyword::Input),
    ("state:", Keyword::State),
    ("size:", Keyword::Size),
    ("output:", Keyword::Output),
    ("state-after:", Keyword::StateAfter),
];

impl Case {
    /// The cases of a file.
    pub(super) fn split(text: &str) -> Result<Vec<Self>> {
        let mut cases: Vec<Self> = Vec::new();
        let mut in_block = false;
        for (i, line) in text.lines().enumerate() {
            let comment = line.trim_start().strip_prefix("//").map(str::trim);
            if let Some(command) = comment.and_then(|c| c.strip_prefix("test:")) {
                let command = command.split_whitespace().map(str::to_owned).collect();
                let (text, directives) = (String::new(), Vec::new());
                cases.push(Self { line: i + 1, command, text, directives, block: None });
                in_block = false;
                continue;
            }
            let Some(case) = cases.last_mut() else {
                if line.trim().is_empty() || comment.is_some() {
                    continue;
                }
                rlx_ir::bail!(InvalidArgument, "line {}: a case starts with // test:", i + 1);
            };
            case.text.push_str(line);
            case.text.push('\n');
            let Some(comment) = comment else {
                in_block = false;
                continue;
            };
            if in_block {
                let raw = line.trim_start().trim_start_matches("//");
                if let Some((_, lines)) = &mut case.block {
                    lines.push(raw.strip_prefix(' ').unwrap_or(raw).trim_end().to_owned());
                }
            } else if comment == "expect:" {
                case.block = Some((i + 1, Vec::new()));
                in_block = true;
            } else if let Some((word, keyword)) = KEYWORDS.iter().find(|(w, _)| comment.starts_with(w)) {
                case.directives.push((*keyword, comment[word.len()..].trim().to_owned()));
            }
        }
        Ok(cases)
    }

    /// The texts of one kind of directive.
    pub(super) fn of(&self, keyword: Keyword) -> impl Iterator<Item = &str> {
        self.directives.iter().filter(move |(k, _)| *k == keyword).map(|(_, t)| t.as_str())
    }

    /// The value of `name=value` in the command.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.command.iter().find_map(|w| w.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether the command holds `word`.
    pub(super) fn has(&self, word: &str) -> bool {
        self.command.iter().any(|w| w == word)
    }

    /// Refuses options that the command does not know.
    pub(super) fn check_options(&self, known: &[&str]) -> Result<()> {
        let unknown = self.command.iter().skip(1).find(|w| match w.split_once('=') {
            Some((name, _)) => !known.contains(&name),
            None => false,
        });
        match unknown {
            None => Ok(()),
            Some(word) => rlx_ir::bail!(InvalidArgument, "unknown option {word}"),
        }
    }
}
