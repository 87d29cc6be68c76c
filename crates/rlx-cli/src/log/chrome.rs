//! Traces as Perfetto and chrome://tracing read them: a JSON array of events, written as they happen.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rlx::gguf::OutputFile;
use rlx::ir::{ErrorKind, Tick, bail};
use serde_json::{Map, Value, json};

use crate::error::{Error, Result};

/// What happens at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A span begins on this thread.
    Begin,
    /// It ends.
    End,
    /// Something happened.
    Instant,
}

/// The file of a trace.
#[derive(Debug)]
pub struct ChromeTrace {
    path: PathBuf,
    start: Tick,
    file: Mutex<Option<Lines>>,
}

#[derive(Debug)]
struct Lines {
    out: BufWriter<File>,
    count: u64,
    failed: Option<std::io::Error>,
}

impl ChromeTrace {
    /// Makes the file. One that is there is replaced if it is a trace: the model to be traced would be an easy slip.
    pub fn create(path: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| Error::new(ErrorKind::Io, format!("{}: {e}", path.display()));
        let target = OutputFile::target(path)?;
        let start = match File::open(&target) {
            Ok(file) => start_of(file).map_err(failed)?,
            Err(_) => Vec::new(),
        };
        if !(start.is_empty() || is_trace(&start)) {
            bail!(InvalidArgument, "{}: it is there, and is no trace that could be replaced", path.display());
        }
        let file = File::create(&target).map_err(failed)?;
        let lines = Lines { out: BufWriter::new(file), count: 0, failed: None };
        Ok(Self { path: path.to_owned(), start: Tick::now(), file: Mutex::new(Some(lines)) })
    }

    /// Writes one event.
    pub fn write(&self, phase: Phase, name: &str, args: &Map<String, Value>) {
        let us = self.start.elapsed_ns() as f64 / 1000.0;
        let mut event = json!({"name": name, "ts": us, "pid": std::process::id(), "tid": thread_number()});
        event["ph"] = match phase {
            Phase::Begin => "B".into(),
            Phase::End => "E".into(),
            Phase::Instant => "i".into(),
        };
        if phase == Phase::Instant {
            event["s"] = "t".into();
        }
        if !args.is_empty() && phase != Phase::End {
            event["args"] = Value::Object(args.clone());
        }
        if let Some(lines) = self.file.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            lines.push(&event);
        }
    }

    /// Ends the file; a trace that could not be written is a warning, not a failure of the work.
    pub fn finish(&self) {
        let Some(mut lines) = self.file.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let end = if lines.count == 0 { "[]\n" } else { "\n]\n" };
        let ended = lines.out.write_all(end.as_bytes()).and_then(|()| lines.out.flush());
        if let Some(e) = lines.failed.or(ended.err()) {
            let _ = writeln!(std::io::stderr(), "warning: {}: {e}", self.path.display());
        }
    }
}

impl Lines {
    fn push(&mut self, event: &Value) {
        let before = if self.count == 0 { "[\n" } else { ",\n" };
        if let Err(e) = write!(self.out, "{before}{event}") {
            self.failed.get_or_insert(e);
        }
        self.count += 1;
    }
}

/// The first bytes of a file.
fn start_of(file: File) -> std::io::Result<Vec<u8>> {
    let mut start = Vec::new();
    file.take(1 << 16).read_to_end(&mut start)?;
    Ok(start)
}

/// Whether a file that starts so is what is written here.
fn is_trace(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(start);
    let mut lines = text.lines();
    let first = |line: &str| line.starts_with('{') && line.contains("\"ph\":");
    match lines.next() {
        Some("[]") => lines.next().is_none(),
        Some("[") => lines.next().is_none_or(first),
        _ => false,
    }
}

/// A small number for each thread, in the order in which they are first seen.
fn thread_number() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|n| *n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_told_from_other_files() {
        for start in ["[]\n", "[\n{\"name\":\"load\",\"ph\":\"B\",\"pid\":1}", "[\n"] {
            assert!(is_trace(start.as_bytes()), "{start}");
        }
        for start in ["GGUF", "{\"text\": 1}", "[{\"idx\":0}]", "[\n  {\n    \"idx\": 0", "a text\n"] {
            assert!(!is_trace(start.as_bytes()), "{start}");
        }
    }
}
