//! Pages of KV caches: which sequence owns which page, block tables and slots.
//!
//! A state holds `[pages, page_len, num_kv_heads, head_dim]`. A [`PageTable`] hands its pages to sequences as they grow, and
//! takes them back; page addresses never move. All layers' states share one table.

use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};

/// Hands out pages.
#[derive(Debug)]
pub struct PageTable {
    page_len: usize,
    pages: usize,
    free: Arc<FreeList>,
}

/// The pages of one table that no sequence has. Sequences hold it too, so that a dropped one gives its pages back, and so that
/// it is known whose they are.
#[derive(Debug)]
struct FreeList(Mutex<Vec<u32>>);

impl FreeList {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        // The list is whole after every statement, so a panic elsewhere does not spoil it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sequence's pages and length. While it holds pages it belongs to the table that they come from, which gets them back
/// when it is dropped.
#[derive(Debug, Default)]
pub struct Sequence {
    pages: Vec<u32>,
    len: usize,
    /// Where the pages come from; `None` before the first one.
    owner: Option<Arc<FreeList>>,
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

    /// Gives back the pages from the one at index `keep` on.
    fn release(&mut self, keep: usize) {
        if let Some(owner) = &self.owner {
            owner.lock().extend(self.pages.drain(keep..).rev());
        }
    }
}

impl Drop for Sequence {
    fn drop(&mut self) {
        self.release(0);
    }
}

impl PageTable {
    /// A table over `pages` pages of `page_len` tokens, all free.
    pub fn new(pages: usize, page_len: usize) -> Self {
        let count = u32::try_from(pages).unwrap_or(u32::MAX);
        let free = Arc::new(FreeList(Mutex::new((0..count).rev().collect())));
        Self { page_len: page_len.max(1), pages, free }
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
        self.free.lock().len() * self.page_len
    }

    /// Whether `sequence` can be used with this table: it holds pages of this one, or none at all.
    ///
    /// # Errors
    /// `InvalidArgument` where it holds pages of another table.
    pub fn check(&self, sequence: &Sequence) -> Result<()> {
        let owned = sequence.owner.as_ref().is_some_and(|owner| Arc::ptr_eq(owner, &self.free));
        if !owned && !sequence.pages.is_empty() {
            rlx_ir::bail!(
                InvalidArgument,
                "the sequence of {} tokens lives in another session: use it there, or begin a new one here",
                sequence.len
            );
        }
        Ok(())
    }

    /// Grows `sequence` by `count` tokens and returns their slots (`page * page_len + offset`), in order.
    ///
    /// # Errors
    /// `ContextExceeded` where too few pages are free; `InvalidArgument` where it holds pages of another table. The sequence
    /// is unchanged then.
    pub fn append(&mut self, sequence: &mut Sequence, count: usize) -> Result<Vec<i32>> {
        self.check(sequence)?;
        let needed = sequence.len.saturating_add(count).div_ceil(self.page_len);
        let needed = needed.saturating_sub(sequence.pages.len());
        let mut free = self.free.lock();
        let Some(at) = free.len().checked_sub(needed) else {
            rlx_ir::bail!(
                ContextExceeded,
                "{} tokens and {count} more do not fit: the context holds {} tokens, {} are free",
                sequence.len,
                self.capacity(),
                free.len() * self.page_len
            );
        };
        sequence.pages.extend(free.drain(at..).rev());
        sequence.owner = Some(self.free.clone());
        let slots = (sequence.len..sequence.len + count)
            .map(|p| sequence.pages[p / self.page_len] as usize * self.page_len + p % self.page_len);
        let slots = slots.map(|s| i32::try_from(s).unwrap_or(i32::MAX)).collect();
        sequence.len += count;
        Ok(slots)
    }

    /// Shortens `sequence` to `len` tokens and frees the pages behind them.
    ///
    /// # Errors
    /// `InvalidArgument` where it holds pages of another table; it is unchanged then.
    pub fn truncate(&mut self, sequence: &mut Sequence, len: usize) -> Result<()> {
        self.check(sequence)?;
        sequence.len = sequence.len.min(len);
        sequence.release(sequence.len.div_ceil(self.page_len));
        Ok(())
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
        table.truncate(&mut b, 0).unwrap();
        assert_eq!(table.append(&mut a, 2).unwrap(), [7, 8]);
        table.truncate(&mut a, 3).unwrap();
        assert_eq!((a.pages(), table.free_tokens()), (&[0u32][..], 8));
    }
    #[test]
    fn a_dropped_sequence_gives_its_pages_back() {
        let mut table = PageTable::new(2, 4);
        let mut a = Sequence::default();
        table.append(&mut a, 8).unwrap();
        assert_eq!(table.free_tokens(), 0);
        drop(a);
        assert_eq!(table.free_tokens(), 8);
        // Also where the table went first.
        let mut b = Sequence::default();
        table.append(&mut b, 1).unwrap();
        drop(table);
        drop(b);
    }

    #[test]
    fn a_sequence_of_another_table_is_refused_and_stays_as_it_is() {
        let (mut here, mut there) = (PageTable::new(2, 4), PageTable::new(2, 4));
        let mut a = Sequence::default();
        here.append(&mut a, 5).unwrap();
        for e in [there.append(&mut a, 1).unwrap_err(), there.truncate(&mut a, 0).unwrap_err()] {
            assert!(
                e.kind() == rlx_ir::ErrorKind::InvalidArgument && e.message().contains("5 tokens"),
                "{e}"
            );
        }
        assert_eq!((a.len(), here.free_tokens(), there.free_tokens()), (5, 0, 8));
        // Without pages it belongs to nobody.
        here.truncate(&mut a, 0).unwrap();
        there.append(&mut a, 1).unwrap();
        assert_eq!((here.free_tokens(), there.free_tokens()), (8, 4));
        drop(a);
        assert_eq!((here.free_tokens(), there.free_tokens()), (8, 8));
    }
}
