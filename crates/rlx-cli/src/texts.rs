//! The texts of `embed`: from the command line, or from a file or stdin, piece by piece.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use rlx::ir::bail;

use crate::error::{self, Error, Result};

/// The most texts of a piece.
const PIECE_TEXTS: usize = 1024;
/// A piece ends after this many bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Where texts come from.
pub enum Texts {
    /// All at once.
    Given(Option<Vec<String>>),
    /// Line by line.
    Lines(Lines),
}

impl Texts {
    /// The lines of a file, or of stdin for `-`: one text each, or one JSON object with a `text` field each.
    pub fn open(path: &Path) -> Result<Self> {
        let (name, reader, total_bytes): (_, Box<dyn BufRead>, _) = if path.as_os_str() == "-" {
            ("stdin".to_owned(), Box::new(BufReader::new(std::io::stdin())), None)
        } else {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|e| error::io(&name, &e))?;
            let size = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len());
            (name, Box::new(BufReader::new(file)), size)
        };
        let json = path.extension().is_some_and(|e| e == "jsonl" || e == "ndjson").then_some(true);
        Ok(Self::Lines(Lines { name, reader, total_bytes, read_bytes: 0, line: 0, json }))
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
            Self::Lines(lines) => Some((lines.read_bytes, lines.total_bytes?)),
        }
    }
}

/// A stream of lines.
pub struct Lines {
    name: String,
    reader: Box<dyn BufRead>,
    total_bytes: Option<u64>,
    read_bytes: u64,
    line: u64,
    /// Whether lines are JSON objects; decided by the first one.
    json: Option<bool>,
}

impl Lines {
    fn next_text(&mut self) -> Result<Option<String>> {
        loop {
            let mut bytes = Vec::new();
            let read = self.reader.read_until(b'\n', &mut bytes).map_err(|e| error::io(&self.name, &e))?;
            if read == 0 {
                return Ok(None);
            }
            self.read_bytes += read as u64;
            self.line += 1;
            if bytes.pop_if(|b| *b == b'\n').is_some() {
                bytes.pop_if(|b| *b == b'\r');
            }
            let Ok(mut text) = String::from_utf8(bytes) else {
                bail!(InvalidFile, "{}: line {} is not UTF-8", self.name, self.line);
            };
            if self.line == 1
                && let Some(rest) = text.strip_prefix('\u{feff}')
            {
                text = rest.to_owned();
            }
            let json = *self.json.get_or_insert_with(|| text_field(&text).is_some());
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
                    "{}: line {} is no JSON object with a string \"text\", as the lines of JSONL must be",
                    self.name,
                    self.line
                ),
            }
        }
    }
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
        let lines =
            Lines { name: "test".into(), reader, total_bytes: None, read_bytes: 0, line: 0, json: None };
        Texts::Lines(lines).next_piece()
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
}
