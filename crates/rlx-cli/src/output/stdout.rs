//! Stdout, whose reader may go away at any time.

use std::io::{BufWriter, StdoutLock, Write};

use rlx::ir::ErrorKind;
use serde::Serialize;

use crate::error::{Error, Result};

/// Buffered stdout. A write after its reader has gone is an error of the kind `Cancelled`, which ends a command quietly.
pub struct Stdout(BufWriter<StdoutLock<'static>>);

impl Stdout {
    /// Stdout, for this thread alone.
    pub fn lock() -> Self {
        Self(BufWriter::with_capacity(1 << 16, std::io::stdout().lock()))
    }

    /// Writes bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(|e| failed(&e))
    }

    /// Writes text.
    pub fn text(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())
    }

    /// Writes one line.
    pub fn line(&mut self, text: impl std::fmt::Display) -> Result<()> {
        writeln!(self.0, "{text}").map_err(|e| failed(&e))
    }

    /// Writes a value as JSON on one line, without its end.
    pub fn json(&mut self, value: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.0, value).map_err(|e| failed(&e.into()))
    }

    /// Writes a value as JSON on a line of its own.
    pub fn json_line(&mut self, value: &impl Serialize) -> Result<()> {
        self.json(value)?;
        self.text("\n")
    }

    /// Hands everything to the reader.
    pub fn flush(&mut self) -> Result<()> {
        self.0.flush().map_err(|e| failed(&e))
    }
}

fn failed(e: &std::io::Error) -> Error {
    let kind = match e.kind() {
        std::io::ErrorKind::BrokenPipe => ErrorKind::Cancelled,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("stdout: {e}"))
}
