//! `rlx bench`: how fast a model is, as one JSON object.

mod decode;
mod encode;

use clap::Subcommand;
use serde::Serialize;

use crate::error::Result;
use crate::options::{Format, Global};
use crate::output::Stdout;

/// Measures a model.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Token ids to vectors
    Encode(encode::Encode),
    /// A prompt, then one token after the other
    Decode(decode::Decode),
}

impl Bench {
    pub fn run(&self, global: &Global) -> Result<()> {
        match self {
            Self::Encode(c) => c.run(global),
            Self::Decode(c) => c.run(global),
        }
    }
}

/// Nanoseconds as milliseconds.
fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// How many in a second.
fn per_second(n: usize, ns: u64) -> f64 {
    n as f64 * 1e9 / ns.max(1) as f64
}

/// Prints the figures: JSON, or with `--format text` a line each.
fn print(format: Format, figures: &impl Serialize) -> Result<()> {
    let mut out = Stdout::lock();
    match (format, serde_json::to_value(figures)) {
        (Format::Text, Ok(serde_json::Value::Object(figures))) => {
            for (name, value) in figures {
                out.line(format_args!("{name:<20}{value}"))?;
            }
        }
        _ => out.json_line(figures)?,
    }
    out.flush()
}
