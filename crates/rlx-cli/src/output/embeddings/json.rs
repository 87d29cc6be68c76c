//! JSON: one array, or one object per line.

use serde::Serialize;

use super::{Row, Sink};
use crate::error::Result;
use crate::output::Stdout;

#[derive(Serialize)]
struct Object<'a> {
    index: usize,
    text: &'a str,
    tokens: usize,
    truncated: bool,
    embedding: &'a [f32],
}

impl<'a> From<Row<'a>> for Object<'a> {
    fn from(row: Row<'a>) -> Self {
        Self {
            index: row.index,
            text: row.text,
            tokens: row.embedded.tokens,
            truncated: row.embedded.truncated,
            embedding: &row.embedded.vector,
        }
    }
}

/// One object per line.
pub struct Lines;

impl Sink for Lines {
    fn row(&mut self, out: &mut Stdout, row: Row<'_>) -> Result<()> {
        out.json_line(&Object::from(row))
    }

    fn finish(&mut self, _: &mut Stdout, _: usize) -> Result<()> {
        Ok(())
    }
}

/// One array, an object per line.
#[derive(Default)]
pub struct Array {
    rows: usize,
}

impl Sink for Array {
    fn row(&mut self, out: &mut Stdout, row: Row<'_>) -> Result<()> {
        out.text(if self.rows == 0 { "[\n" } else { ",\n" })?;
        self.rows += 1;
        out.json(&Object::from(row))
    }

    fn finish(&mut self, out: &mut Stdout, _: usize) -> Result<()> {
        out.text(if self.rows == 0 { "[]\n" } else { "\n]\n" })
    }
}
