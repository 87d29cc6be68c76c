//! The texts of `embed`: from the command line, or from a file or stdin, piece by piece.

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
    /// JSON objects in a file that ends in .jsonl or .ndjson, or where the first line is one; else texts
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
        Ok(Self::Lines(Box::new(Stream { name, reader, total_bytes, lines: Lines::default(), json })))
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
    /// Whether lines are JSON objects; decided by the first one where nothing else says it.
    json: Option<bool>,
}

impl Stream {
    fn next_text(&mut self) -> Result<Option<String>> {
        loop {
            let Some(mut text) = self.lines.next(&mut *self.reader, &self.name)? else { return Ok(None) };
            if self.lines.line == 1
                && let Some(rest) = text.strip_prefix('\u{feff}')
            {
                text = rest.to_owned();
            }
            let guessed = self.json.is_none();
            let json = *self.json.get_or_insert_with(|| is_object(&text));
            if !json {
                return Ok(Some(text));
            }
            if text.trim().is_empty() {
                continue;
            }
            match text_field(&text) {
                Some(text) => return Ok(Some(text)),
                None => bail!(
                    InvalidFile,
                    "{}: line {} is no JSON object with a string \"text\", as the lines of JSONL must be{}",
                    self.name,
                    self.lines.line,
                    if guessed { "\nlines that are texts as they are: --input-format text" } else { "" }
                ),
            }
        }
    }
}

/// Whether a line is a JSON object, whatever it holds.
fn is_object(line: &str) -> bool {
    line.trim_start().starts_with('{') && serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()
}

/// The `text` of a JSON object, without what else it holds.
fn text_field(line: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Row {
        text: String,
    }
    if !line.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str::<Row>(line).ok().map(|row| row.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(input: &'static str) -> Result<Vec<String>> {
        let reader = Box::new(input.as_bytes());
        let lines = Lines::default();
        let stream = Stream { name: "test".into(), reader, total_bytes: None, lines, json: None };
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
    fn an_object_without_a_text_is_no_text() {
        for first in ["{\"text\": null}", "{\"id\": 1, \"content\": \"x\"}", "{}", " {\"text\": [\"a\"]} "] {
            let e = texts(first).unwrap_err();
            assert_eq!(e.kind(), rlx::ir::ErrorKind::InvalidFile);
            assert!(e.message().contains("line 1") && e.message().contains("--input-format text"), "{e}");
        }
        assert_eq!(texts("{braces} are no JSON\n{}").unwrap(), ["{braces} are no JSON", "{}"]);
    }
}
