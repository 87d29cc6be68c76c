//! The receiver of spans and events.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::chrome::{ChromeTrace, Phase};

/// The finest level that a trace holds.
const TRACE_LEVEL: LevelFilter = LevelFilter::DEBUG;

/// Events up to a level become lines on stderr; spans and events become entries of the trace, if there is one.
pub struct Logger {
    lines: LevelFilter,
    trace: Option<Arc<ChromeTrace>>,
    next: AtomicU64,
    spans: Mutex<HashMap<u64, Span>>,
}

struct Span {
    /// What the trace calls it: the span's name, and its field `name` where it has one, as in `pass fold`.
    name: String,
    args: Map<String, Value>,
    handles: usize,
}

impl Logger {
    /// Lines up to the level `lines`.
    pub fn new(lines: LevelFilter, trace: Option<Arc<ChromeTrace>>) -> Self {
        Self { lines, trace, next: AtomicU64::new(1), spans: Mutex::default() }
    }

    fn level(&self) -> LevelFilter {
        if self.trace.is_some() { self.lines.max(TRACE_LEVEL) } else { self.lines }
    }

    fn with_span<T>(&self, id: &Id, f: impl FnOnce(&mut Span) -> T) -> Option<T> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&id.into_u64()).map(f)
    }

    fn mark(&self, id: &Id, phase: Phase) {
        if let Some(trace) = &self.trace {
            self.with_span(id, |span| trace.write(phase, &span.name, &span.args));
        }
    }
}

impl Subscriber for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let level = if metadata.is_span() && self.trace.is_none() { LevelFilter::OFF } else { self.level() };
        *metadata.level() <= level
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level())
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let name = attributes.metadata().name();
        let name = match fields.0.get("name").and_then(Value::as_str) {
            Some(own) => format!("{name} {own}"),
            None => name.to_owned(),
        };
        let span = Span { name, args: fields.0, handles: 1 };
        self.spans.lock().unwrap_or_else(PoisonError::into_inner).insert(id, span);
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.with_span(id, |span| span.args.extend(fields.0));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let level = *event.metadata().level();
        let mut fields = Fields::default();
        event.record(&mut fields);
        if level <= self.lines {
            let _ = writeln!(std::io::stderr(), "{}", Line(level, &fields.0));
        }
        if let Some(trace) = &self.trace
            && level <= TRACE_LEVEL
        {
            let name = fields.0.get("message").and_then(Value::as_str).unwrap_or(event.metadata().name());
            trace.write(Phase::Instant, name, &fields.0);
        }
    }

    fn enter(&self, id: &Id) {
        self.mark(id, Phase::Begin);
    }

    fn exit(&self, id: &Id) {
        self.mark(id, Phase::End);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.with_span(id, |span| span.handles += 1);
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(span) = spans.get_mut(&id.into_u64()) else { return false };
        span.handles -= 1;
        let closed = span.handles == 0;
        if closed {
            spans.remove(&id.into_u64());
        }
        closed
    }
}

/// The fields of a span or event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for Fields {
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}

/// `warning: message key=value ...`
struct Line<'a>(Level, &'a Map<String, Value>);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.0 {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        let mut text = format!("{word}:");
        if let Some(message) = self.1.get("message").and_then(Value::as_str) {
            write!(text, " {message}")?;
        }
        for (name, value) in self.1.iter().filter(|(name, _)| *name != "message") {
            write!(text, " {name}={value}")?;
        }
        // Values may come from files: nothing in them moves the cursor.
        text.chars().try_for_each(|c| match c.is_control() {
            true => write!(f, "{}", c.escape_default()),
            false => f.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_show_message_and_fields_without_control_characters() {
        let mut fields = Map::new();
        fields.insert("message".into(), "a\u{1b}b".into());
        fields.insert("n".into(), 3.into());
        assert_eq!(Line(Level::WARN, &fields).to_string(), "warning: a\\u{1b}b n=3");
    }
}
