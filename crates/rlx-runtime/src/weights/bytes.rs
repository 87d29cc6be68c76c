//! Shared bytes of a weight: a range of a mapped file, or a buffer.

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Zeroable;
use rlx_gguf::{Mapping, unique_identity};
use rlx_ir::bail;

use crate::{Error, Result};

/// `len` zeros, whose pages are committed as they are touched.
///
/// # Errors
/// `Device` where there is no memory for them: sizes come from models, which may be larger than the machine.
pub fn zeros<T: Zeroable>(len: usize) -> Result<Vec<T>> {
    match bytemuck::allocation::try_zeroed_vec(len) {
        Ok(zeros) => Ok(zeros),
        Err(()) => bail!(Device, "{} bytes of memory cannot be had", len.saturating_mul(size_of::<T>())),
    }
}

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
    /// Those of `fill`; `Device` where there is no memory for it.
    pub fn filled<E: From<Error>>(
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut words: Vec<u64> = zeros(len.div_ceil(8))?;
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

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;

    use super::*;

    #[test]
    fn memory_that_cannot_be_had_is_an_error() {
        for bytes in [usize::MAX / 2, usize::MAX] {
            let e = zeros::<u64>(bytes / 8).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Device);
            assert!(e.message().ends_with("bytes of memory cannot be had"), "{e}");
            let filled = WeightBytes::filled(bytes, |_| Ok::<(), Error>(()));
            assert_eq!(filled.unwrap_err().kind(), ErrorKind::Device);
        }
        assert_eq!(zeros::<u64>(3).unwrap(), [0; 3]);
    }
}
