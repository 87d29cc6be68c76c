//! The texts of `embed`: from the command line, or from a file or stdin, piece by piece.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use clap::ValueEnum;
use rlx::ir::bail;

use crate::error::{self, Error, Result};
use crate::lines::Lines;

/// The most texts of a piece.
const PIECE_TEXTS: usize = 1024;
/// A piece ends after this many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// What the lines of a file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LineFormat {
    /// JSON objects in a file that ends in .jsonl or .ndjson, or where the first line that is not blank is one; else texts
    #[default]
    Auto,
    /// One text each, as it is
    Text,
    /// One JSON object each, whose `text` counts
    Jsonl,
}

/// Where texts come from.
pub enum Texts {
    /// All at once.
    Given(Option<Vec<String>>),
    /// Line by line.
    Lines(Box<Stream>),
}

impl Texts {
    /// The lines of a file, or of stdin for `-`: one text each, or one JSON object with a `text` field each.
    pub fn open(path: &Path, format: LineFormat) -> Result<Self> {
        let (name, reader, total_bytes): (_, Box<dyn BufRead>, _) = if path.as_os_str() == "-" {
            ("stdin".to_owned(), Box::new(BufReader::new(std::io::stdin())), None)
        } else {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|e| error::io(&name, &e))?;
            let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
            (name, Box::new(BufReader::new(file)), size)
        };
        let is_json = path.extension().is_some_and(|e| e == "jsonl" || e == "ndjson");
        let json = match format {
            LineFormat::Auto => is_json.then_some(true),
            LineFormat::Text => Some(false),
            LineFormat::Jsonl => Some(true),
        };
        Ok(Self::Lines(Box::new(Stream {
            name,
            reader,
            total_bytes,
            lines: Lines::default(),
            json,
            blank: VecDeque::new(),
        })))
    }

    /// The next texts; none at the end.
    pub fn next_piece(&mut self) -> Result<Vec<String>> {
        match self {
            Self::Given(texts) => Ok(texts.take().unwrap_or_default()),
            Self::Lines(lines) => {
                let (mut piece, mut bytes) = (Vec::new(), 0);
                while piece.len() < PIECE_TEXTS
                    && bytes < PIECE_BYTES
                    && let Some(text) = lines.next_text()?
                {
                    bytes += text.len();
                    piece.push(text);
                }
                Ok(piece)
            }
        }
    }

    /// Bytes read and in all, where the end is known.
    pub fn position(&self) -> Option<(u64, u64)> {
        match self {
            Self::Given(_) => None,
            Self::Lines(lines) => Some((lines.lines.bytes, lines.total_bytes?)),
        }
    }
}

/// A stream of lines.
pub struct Stream {
    name: String,
    reader: Box<dyn BufRead>,
    total_bytes: Option<u64>,
    lines: Lines,
    /// Whether lines are JSON objects; decided by the first one that is not blank where nothing else says it.
    json: Option<bool>,
    /// The lines before that one, which are texts if it is one.
    blank: VecDeque<String>,
}

impl Stream {
    fn next_text(&mut self) -> Result<Option<String>> {
        if self.json.is_none()
            && let Some(first) = self.decide()?
        {
            return self.text_of(first).map(Some);
        }
        if self.json != Some(true)
            && let Some(blank) = self.blank.pop_front()
        {
            return Ok(Some(blank));
        }
        loop {
            match self.next_line()? {
                Some(line) if self.json == Some(true) && line.trim().is_empty() => {}
                Some(line) => return self.text_of(line).map(Some),
                None => return Ok(None),
            }
        }
    }

    /// The next line, without the mark that a file may begin with.
    fn next_line(&mut self) -> Result<Option<String>> {
        let line = self.lines.next(&mut *self.reader, &self.name)?;
        Ok(line.map(|line| match line.strip_prefix('\u{feff}') {
            Some(rest) if self.lines.line == 1 => rest.to_owned(),
            _ => line,
        }))
    }

    /// Decides what the lines are, by the first one that is not blank. It is returned where it comes next.
    fn decide(&mut self) -> Result<Option<String>> {
        while let Some(line) = self.next_line()? {
            if line.trim().is_empty() {
                self.blank.push_back(line);
                continue;
            }
            let json = line.trim_start().starts_with('{');
            if json && let Err(e) = serde_json::from_str::<serde::de::IgnoredAny>(&line) {
                bail!(
                    InvalidArgument,
                    "{}: line {} begins like a JSON object, but is none: {}\nlines that are texts as they are: \
                     --input-format text",
                    self.name,
                    self.lines.line,
                    reason(&e)
                );
            }
            self.json = Some(json);
            if json || self.blank.is_empty() {
                return Ok(Some(line));
            }
            self.blank.push_back(line);
            return Ok(None);
        }
        self.json = Some(false);
        Ok(None)
    }

    /// The text in a line.
    fn text_of(&self, line: String) -> Result<String> {
        if self.json != Some(true) {
            return Ok(line);
        }
        match text_field(&line) {
            Ok(text) => Ok(text),
            Err(reason) => bail!(
                InvalidFile,
                "{}: line {} is no JSON object with a string \"text\", as the lines of JSONL must be: {reason}\n\
                 lines that are texts as they are: --input-format text",
                self.name,
                self.lines.line
            ),
        }
    }
}

/// The `text` of a JSON object, without what else it holds; or why there is none.
fn text_field(line: &str) -> std::result::Result<String, String> {
    #[derive(serde::Deserialize)]
    struct Row {
        text: String,
    }
    if !line.trim_start().starts_with('{') {
        return Err("it does not begin with {".into());
    }
    serde_json::from_str::<Row>(line).map(|row| row.text).map_err(|e| reason(&e))
}

/// What is wrong with a line of JSON; its number is not 1.
fn reason(e: &serde_json::Error) -> String {
    e.to_string().replacen(" at line 1 column ", " at column ", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(input: &'static str) -> Result<Vec<String>> {
        let reader = Box::new(input.as_bytes());
        let lines = Lines::default();
        let stream = Stream {
            name: "test".into(),
            reader,
            total_bytes: None,
            lines,
            json: None,
            blank: VecDeque::new(),
        };
        Texts::Lines(Box::new(stream)).next_piece()
    }

    #[test]
    fn each_line_is_a_text_and_an_empty_line_is_an_empty_one() {
        assert_eq!(texts("a\r\n\nb c").unwrap(), ["a", "", "b c"]);
        assert_eq!(texts("\n").unwrap(), [""]);
        assert!(texts("").unwrap().is_empty());
        assert_eq!(texts("\u{feff}a\n{\"text\": 1}\n").unwrap(), ["a", "{\"text\": 1}"]);
    }

    #[test]
    fn json_lines_are_known_by_the_first_one() {
        let input = "{\"id\": 7, \"text\": \"a\\u0000\\n\"}\n\n{\"text\":\"b\"}\n";
        assert_eq!(texts(input).unwrap(), ["a\0\n", "b"]);
        let e = texts("{\"text\":\"a\"}\n{\"texts\":\"b\"}\n").unwrap_err();
        assert!(e.message().contains("line 2"), "{e}");
    }

    #[test]
    fn a_first_line_that_is_almost_an_object_is_refused() {
        for (input, line) in [
            ("{\"text\":\"a\",}\n{\"text\":\"b\"}\n", "line 1 "),
            ("{\"text\":\"a\"} {\"text\":\"b\"}\n", "line 1 "),
            ("\n \n{braces} are no JSON\n", "line 3 "),
        ] {
            let e = texts(input).unwrap_err();
            assert_eq!(e.kind(), rlx::ir::ErrorKind::InvalidArgument);
            assert!(e.message().contains(line) && e.message().contains("--input-format text"), "{e}");
            assert!(!e.message().contains("at line 1"), "{e}");
        }
    }

    #[test]
    fn blank_lines_before_the_first_one_decide_nothing() {
        assert_eq!(texts("\n\r\n{\"text\":\"a\"}\n\n{\"text\":\"b\"}").unwrap(), ["a", "b"]);
        assert_eq!(texts("\u{feff}{\"text\":\"a\"}").unwrap(), ["a"]);
        assert_eq!(texts("\n  \na\n{\"text\":\"b\"}").unwrap(), ["", "  ", "a", "{\"text\":\"b\"}"]);
        assert_eq!(texts("\n\n").unwrap(), ["", ""]);
    }

    #[test]
    fn an_object_without_a_text_is_no_text() {
        for first in ["{\"text\": null}", "{\"id\": 1, \"content\": \"x\"}", "{}", " {\"text\": [\"a\"]} "] {
            let e = texts(first).unwrap_err();
            assert_eq!(e.kind(), rlx::ir::ErrorKind::InvalidFile);
            assert!(e.message().contains("line 1") && e.message().contains("--input-format text"), "{e}");
        }
        let e = texts("{\"text\":\"a\",\"text\":\"b\"}").unwrap_err();
        assert!(e.message().contains("duplicate field `text` at column 18"), "{e}");
    }
}
