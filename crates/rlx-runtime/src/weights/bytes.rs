//! Shared bytes of a weight: a range of a mapped file, or a buffer.

use std::ops::{Deref, Range};
use std::sync::Arc;

use rlx_gguf::{Mapping, unique_identity};

/// Bytes of a weight, shared without a copy.
#[derive(Clone, Debug)]
pub enum WeightBytes {
    /// A range of a file (or of a buffer that stands for one).
    Mapped(Mapping, Range<usize>),
    /// A buffer of 8-byte words, so that every scalar dtype is aligned, and how many of its bytes count.
    Owned(Arc<Vec<u64>>, usize),
}

impl WeightBytes {
    /// A buffer that holds `bytes`.
    pub fn owned(bytes: &[u8]) -> Self {
        let mut words = vec![0u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self::Owned(Arc::new(words), bytes.len())
    }

    /// A buffer of `len` bytes that `fill` writes, zeros at first: what is read needs no buffer of its own.
    ///
    /// # Errors
    /// Those of `fill`.
    pub fn filled<E>(len: usize, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut words = vec![0u64; len.div_ceil(8)];
        fill(&mut bytemuck::cast_slice_mut(&mut words)[..len])?;
        Ok(Self::Owned(Arc::new(words), len))
    }

    /// Whether the first byte lies at a multiple of `align`.
    pub fn is_aligned(&self, align: usize) -> bool {
        self.as_ptr().addr().is_multiple_of(align)
    }

    /// The part `range` of these bytes. Panics like a slice where it is out of range.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        match self {
            Self::Mapped(mapping, own) => {
                Self::Mapped(mapping.clone(), own.start + range.start..own.start + range.end)
            }
            Self::Owned(..) => Self::owned(&self[range]),
        }
    }

    /// Gives the pages of `range` back to the system, where they belong to a file.
    pub fn release(&self, range: Range<usize>) {
        if let Self::Mapped(mapping, own) = self {
            mapping.release(own.start + range.start..own.start + range.end);
        }
    }

    /// A text for these bytes that no others have in this process. That of a part of a file stays the same while the file does.
    pub fn identity(&self) -> String {
        match self {
            Self::Mapped(mapping, range) => format!("{} at {range:?}", mapping.identity()),
            Self::Owned(..) => unique_identity("memory"),
        }
    }

    /// The bytes that were allocated for this: 0 for a file.
    pub fn resident_bytes(&self) -> u64 {
        match self {
            Self::Mapped(..) => 0,
            Self::Owned(words, _) => (words.len() * 8) as u64,
        }
    }
}

impl Deref for WeightBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(mapping, range) => &mapping[range.clone()],
            Self::Owned(words, len) => &bytemuck::cast_slice(words)[..*len],
        }
    }
}
