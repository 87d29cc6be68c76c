//! Tables for people: columns as wide as what stands in them.

use std::fmt;

/// On which side the cells of a column begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A table with a header.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Self {
        Self {
            columns: columns.into_iter().map(|(name, align)| (name.into(), align)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let all = || std::iter::once(&header).chain(&self.rows);
        let width = |i: usize| all().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        for (line, row) in all().enumerate() {
            let mut text = String::new();
            for ((cell, width), (_, align)) in row.iter().zip(&widths).zip(&self.columns) {
                let space = " ".repeat(width.saturating_sub(cell.chars().count()));
                let (before, after) = if *align == Align::Left { ("", &*space) } else { (&*space, "") };
                text += &format!("{before}{cell}{after}  ");
            }
            let end = if line < self.rows.len() { "\n" } else { "" };
            write!(f, "{}{end}", text.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_cells() {
        let mut table = Table::new([("op", Align::Left), ("n", Align::Right)]);
        table.row(["matmul".into(), "7".into()]);
        table.row(["é".into(), "12".into()]);
        assert_eq!(table.to_string(), "op       n\nmatmul   7\né       12");
    }
}
