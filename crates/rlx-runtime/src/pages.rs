//! Pages of KV caches: which sequence owns which page, block tables and slots.
//!
//! A state holds `[pages, page_len, num_kv_heads, head_dim]`. A [`PageTable`] hands its pages to sequences as they grow, and
//! takes them back; page addresses never move. All layers' states share one table.

use crate::error::{Error, Result};

/// Hands out pages.
#[derive(Clone, Debug)]
pub struct PageTable {
    page_len: usize,
    pages: usize,
    free: Vec<u32>,
}

/// A sequence's pages and length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    pages: Vec<u32>,
    len: usize,
}

impl Sequence {
    /// The tokens that are in the cache.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no token is in the cache.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The pages in order of position.
    pub fn pages(&self) -> &[u32] {
        &self.pages
    }
}

impl PageTable {
    /// A table over `pages` pages of `page_len` tokens, all free.
    pub fn new(pages: usize, page_len: usize) -> Self {
        let count = u32::try_from(pages).unwrap_or(u32::MAX);
        Self { page_len: page_len.max(1), pages, free: (0..count).rev().collect() }
    }

    /// Tokens per page.
    pub fn page_len(&self) -> usize {
        self.page_len
    }

    /// The tokens that all pages hold.
    pub fn capacity(&self) -> usize {
        self.pages * self.page_len
    }

    /// The tokens that the free pages hold.
    pub fn free_tokens(&self) -> usize {
        self.free.len() * self.page_len
    }

    /// Grows `sequence` by `count` tokens and returns their slots (`page * page_len + offset`), in order.
    ///
    /// # Errors
    /// `ContextExceeded` where too few pages are free; the sequence is unchanged then.
    pub fn append(&mut self, sequence: &mut Sequence, count: usize) -> Result<Vec<i32>> {
        let needed = (sequence.len + count).div_ceil(self.page_len).saturating_sub(sequence.pages.len());
        if needed > self.free.len() {
            rlx_ir::bail!(
                ContextExceeded,
                "{} tokens and {count} more do not fit: the context holds {} tokens, {} are free",
                sequence.len,
                self.capacity(),
                self.free_tokens()
            );
        }
        let at = self.free.len() - needed;
        sequence.pages.extend(self.free.drain(at..).rev());
        let slots = (sequence.len..sequence.len + count)
            .map(|p| sequence.pages[p / self.page_len] as usize * self.page_len + p % self.page_len);
        let slots = slots.map(|s| i32::try_from(s).unwrap_or(i32::MAX)).collect();
        sequence.len += count;
        Ok(slots)
    }

    /// Shortens `sequence` to `len` tokens and frees the pages behind them.
    pub fn truncate(&mut self, sequence: &mut Sequence, len: usize) {
        sequence.len = sequence.len.min(len);
        let keep = sequence.len.div_ceil(self.page_len);
        self.free.extend(sequence.pages.drain(keep..).rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_handed_out_in_order_and_come_back() {
        let mut table = PageTable::new(3, 4);
        let (mut a, mut b) = (Sequence::default(), Sequence::default());
        assert_eq!(table.append(&mut a, 5).unwrap(), [0, 1, 2, 3, 4]);
        assert_eq!(table.append(&mut b, 1).unwrap(), [8]);
        assert_eq!(table.append(&mut a, 2).unwrap(), [5, 6]);
        let e = table.append(&mut a, 2).unwrap_err();
        assert_eq!((e.kind(), a.len()), (rlx_ir::ErrorKind::ContextExceeded, 7));
        table.truncate(&mut b, 0);
        assert_eq!(table.append(&mut a, 2).unwrap(), [7, 8]);
        table.truncate(&mut a, 3);
        assert_eq!((a.pages(), table.free_tokens()), (&[0u32][..], 8));
    }
}
