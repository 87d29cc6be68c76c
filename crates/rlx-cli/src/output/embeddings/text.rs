//! For people: the start of each vector, and how near the texts are to each other.

use super::{Row, Sink};
use crate::error::Result;
use crate::output::{Align, Stdout, Table, preview};

/// Components of a vector that are shown.
const SHOWN: usize = 6;
/// Characters of a text that are shown.
const TEXT_CHARS: usize = 60;
/// The most texts that are compared with each other.
const MAX_COMPARED: usize = 12;

/// The start of each vector, and cosines where there are 2 to 12 texts.
#[derive(Default)]
pub struct Text {
    rows: usize,
    compared: Vec<(usize, Vec<f32>)>,
}

impl Sink for Text {
    fn row(&mut self, out: &mut Stdout, row: Row<'_>) -> Result<()> {
        self.rows += 1;
        let vector = &row.embedded.vector;
        if self.rows <= MAX_COMPARED {
            self.compared.push((row.index, vector.clone()));
        }
        let cut = if row.embedded.truncated { ", cut" } else { "" };
        out.line(format_args!(
            "{}: {} ({} tokens{cut})",
            row.index,
            preview(row.text, TEXT_CHARS),
            row.embedded.tokens
        ))?;
        let start: Vec<String> = vector.iter().take(SHOWN).map(|v| format!("{v:.4}")).collect();
        let more = if vector.len() > SHOWN { ", …" } else { "" };
        out.line(format_args!("   [{}{more}] {} numbers", start.join(", "), vector.len()))
    }

    fn finish(&mut self, out: &mut Stdout, _: usize) -> Result<()> {
        if !(2..=MAX_COMPARED).contains(&self.rows) {
            return Ok(());
        }
        let header =
            std::iter::once("cosine".to_owned()).chain(self.compared.iter().map(|r| r.0.to_string()));
        let mut table = Table::new(header.map(|name| (name, Align::Right)));
        for (index, a) in &self.compared {
            let cosines = self.compared.iter().map(|(_, b)| format!("{:.4}", cosine(a, b)));
            table.row(std::iter::once(index.to_string()).chain(cosines));
        }
        out.line(format_args!("\n{table}"))
    }
}

/// The cosine of the angle between two vectors; 0 where one has no length.
fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    if norms > 0.0 { dot(a, b) / norms } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_do_not_depend_on_length() {
        assert!((cosine(&[1.0, 1.0], &[3.0, 3.0]) - 1.0).abs() < 1e-12);
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 2.0]), 0.0);
        assert_eq!(cosine(&[0.0], &[0.0]), 0.0);
    }
}
