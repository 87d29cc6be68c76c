//! The vectors of `embed`, in each format.

mod json;
mod npy;
mod text;

use rlx::models::embedding::Embedded;

use super::Stdout;
use crate::error::Result;
use crate::options::Format;

/// A text with its vector.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its place among the texts.
    pub index: usize,
    /// The text.
    pub text: &'a str,
    /// Its vector.
    pub embedded: &'a Embedded,
}

/// Writes vectors in one format.
pub trait Sink {
    /// Takes the next vector.
    fn row(&mut self, out: &mut Stdout, row: Row<'_>) -> Result<()>;

    /// Writes what comes after all vectors, which have `dim` components.
    fn finish(&mut self, out: &mut Stdout, dim: usize) -> Result<()>;

    /// Whether a vector may be missing: whether rows say which text they belong to.
    fn has_index(&self) -> bool {
        true
    }
}

/// The sink of a format.
pub fn sink(format: Format) -> Box<dyn Sink> {
    match format {
        Format::Text => Box::<text::Text>::default(),
        Format::Json => Box::<json::Array>::default(),
        Format::Jsonl => Box::new(json::Lines),
        Format::Npy => Box::<npy::Npy>::default(),
    }
}
