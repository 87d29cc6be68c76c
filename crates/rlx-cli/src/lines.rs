//! Lines of a file or of stdin.

use std::io::{BufRead, Read};

use rlx::ir::bail;

use crate::error::{self, Error, Result};

/// A longer line is refused, in bytes: what has no line ends is no text, and would fill the memory.
const MAX_LINE: u64 = 64 << 20;

/// What has been read so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lines {
    /// The number of the last line, from 1.
    pub line: u64,
    /// Bytes of all lines.
    pub bytes: u64,
}

impl Lines {
    /// The next line without its end; `None` at the end of `reader`, which is called `name` in messages.
    pub fn next(&mut self, reader: &mut dyn BufRead, name: &str) -> Result<Option<String>> {
        let mut bytes = Vec::new();
        let read = reader.take(MAX_LINE + 1).read_until(b'\n', &mut bytes);
        let read = read.map_err(|e| error::io(name, &e))? as u64;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        self.bytes += read;
        if bytes.pop_if(|b| *b == b'\n').is_some() {
            bytes.pop_if(|b| *b == b'\r');
        } else if read > MAX_LINE {
            bail!(InvalidFile, "{name}: line {} is longer than {} MiB", self.line, MAX_LINE >> 20);
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => bail!(InvalidFile, "{name}: line {} is not UTF-8", self.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn a_line_without_end_is_refused_within_bounded_memory() {
        let mut endless = BufReader::new(std::io::repeat(b'a'));
        let mut lines = Lines::default();
        let e = lines.next(&mut endless, "zero").unwrap_err();
        assert_eq!(e.message(), "zero: line 1 is longer than 64 MiB");
        let long = vec![b'a'; 1 << 20];
        let read = Lines::default().next(&mut long.as_slice(), "long").unwrap();
        assert_eq!(read.map(|line| line.len()), Some(1 << 20));
    }
}
