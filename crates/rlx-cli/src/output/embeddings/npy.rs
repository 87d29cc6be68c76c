//! NumPy's array file, format version 1.0: <https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html>.

use super::{Row, Sink};
use crate::error::Result;
use crate::output::Stdout;

/// The data starts at a multiple of this many bytes.
const ALIGN: usize = 64;

/// One float32 array [n, dim]. The header holds n, so the vectors are kept until the end.
#[derive(Default)]
pub struct Npy {
    rows: usize,
    values: Vec<f32>,
}

impl Sink for Npy {
    fn row(&mut self, _: &mut Stdout, row: Row<'_>) -> Result<()> {
        self.rows += 1;
        self.values.extend_from_slice(&row.embedded.vector);
        Ok(())
    }

    fn finish(&mut self, out: &mut Stdout, dim: usize) -> Result<()> {
        out.bytes(&header(self.rows, dim))?;
        for value in &self.values {
            out.bytes(&value.to_le_bytes())?;
        }
        Ok(())
    }

    fn has_index(&self) -> bool {
        false
    }
}

fn header(rows: usize, dim: usize) -> Vec<u8> {
    let mut dict = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {dim}), }}");
    // Magic, version and length take 10 bytes, the line end one.
    let used = 10 + dict.len() + 1;
    dict += &" ".repeat(used.next_multiple_of(ALIGN) - used);
    dict += "\n";
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_aligned_whatever_the_shape() {
        for (rows, dim) in [(0, 384), (7, 1), (usize::MAX, 1024)] {
            let bytes = header(rows, dim);
            assert_eq!(bytes.len() % ALIGN, 0);
            assert_eq!(usize::from(u16::from_le_bytes([bytes[8], bytes[9]])), bytes.len() - 10);
            assert_eq!(bytes.last(), Some(&b'\n'));
            let text = String::from_utf8_lossy(&bytes).into_owned();
            assert!(text.contains(&format!("'shape': ({rows}, {dim}), }}")), "{text}");
        }
    }
}
