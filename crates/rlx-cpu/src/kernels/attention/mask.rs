//! Which keys a query sees.

use std::ops::Range;

use rlx_ir::bail;

use crate::error::{Error, Result};

/// One value for each head (or all heads), query token and key.
#[derive(Clone, Copy, Debug)]
pub struct MaskTable<'a, T> {
    /// `[heads, N, keys]`: the value for head h, token n of the batch and key j of that token's sequence.
    pub data: &'a [T],
    /// 1 (the same for all heads) or the number of heads of q.
    pub heads: usize,
    /// At least the keys of the longest sequence.
    pub keys: usize,
}

impl<T> MaskTable<'_, T> {
    fn row(&self, head: usize, tokens: usize, token: usize) -> &[T] {
        let head = if self.heads == 1 { 0 } else { head };
        &self.data[(head * tokens + token) * self.keys..][..self.keys]
    }

    fn check(&self, heads: usize, tokens: usize, keys: usize) -> Result<()> {
        let elems = self.heads.checked_mul(tokens).and_then(|n| n.checked_mul(self.keys));
        if (self.heads != 1 && self.heads != heads) || self.keys < keys || elems != Some(self.data.len()) {
            bail!(
                InvalidArgument,
                "attention: a mask of [{}, {tokens}, {}] with {} elements for {heads} heads and {keys} keys",
                self.heads,
                self.keys,
                self.data.len()
            );
        }
        Ok(())
    }
}

/// Which keys j the query at position i sees, and what is added to its scores.
#[derive(Clone, Copy, Debug, Default)]
pub enum Mask<'a> {
    /// All.
    #[default]
    None,
    /// `j <= i`.
    Causal,
    /// `i - window < j <= i`.
    SlidingWindow(usize),
    /// `|i - j| <= window`.
    Local(usize),
    /// Those whose byte is not 0.
    Custom(MaskTable<'a, u8>),
    /// All but those whose value is negative infinity; the value is added to the score.
    Bias(MaskTable<'a, f32>),
}

/// The mask of one query.
#[derive(Clone, Copy)]
pub(super) enum RowMask<'a> {
    All,
    Custom(&'a [u8]),
    Bias(&'a [f32]),
}

impl Mask<'_> {
    pub(super) fn check(&self, heads: usize, tokens: usize, keys: usize) -> Result<()> {
        match self {
            Self::Custom(table) => table.check(heads, tokens, keys),
            Self::Bias(table) => table.check(heads, tokens, keys),
            _ => Ok(()),
        }
    }

    /// The run of keys that may be visible from a position.
    pub(super) fn range(&self, position: usize, keys: usize) -> Range<usize> {
        let end = keys.min(position + 1);
        match *self {
            Self::None | Self::Custom(_) | Self::Bias(_) => 0..keys,
            Self::Causal => 0..end,
            Self::SlidingWindow(window) => (position + 1).saturating_sub(window).min(end)..end,
            Self::Local(window) => {
                let end = keys.min(position.saturating_add(window).saturating_add(1));
                position.saturating_sub(window).min(end)..end
            }
        }
    }

    /// Whether it holds a value for each query and key.
    pub(super) fn is_table(&self) -> bool {
        matches!(self, Self::Custom(_) | Self::Bias(_))
    }

    pub(super) fn row(&self, head: usize, tokens: usize, token: usize) -> RowMask<'_> {
        match self {
            Self::Custom(table) => RowMask::Custom(table.row(head, tokens, token)),
            Self::Bias(table) => RowMask::Bias(table.row(head, tokens, token)),
            _ => RowMask::All,
        }
    }
}

impl RowMask<'_> {
    /// Whether key j, inside the row's range, is visible.
    pub(super) fn sees(&self, j: usize) -> bool {
        match self {
            Self::All => true,
            Self::Custom(mask) => mask[j] != 0,
            Self::Bias(bias) => bias[j] != f32::NEG_INFINITY,
        }
    }
}
