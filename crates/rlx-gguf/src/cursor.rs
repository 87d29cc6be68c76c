//! Bounded reads of little-endian fields.

use rlx_ir::bail;

use crate::{Error, Result};

/// How wide lengths and dimensions are: 4 bytes in version 1, 8 from version 2 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// Version 1.
    Four,
    /// Versions 2 and 3.
    Eight,
}

impl Width {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// A position in the bytes of a file; every read is checked.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    pub(crate) width: Width,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8], width: Width) -> Self {
        Self { bytes, at: 0, width }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The bytes from here to where `later` stands.
    pub(crate) fn until(&self, later: &Self) -> &'a [u8] {
        &self.bytes[self.at..later.at.max(self.at)]
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next `n` bytes; `what` names them in the error.
    pub(crate) fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8]> {
        if n > self.remaining() {
            bail!(
                InvalidFile,
                "the file ends inside {what}: {n} bytes wanted at byte {}, {} are left",
                self.at,
                self.remaining()
            );
        }
        let taken = &self.bytes[self.at..self.at + n];
        self.at += n;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(crate) fn u32(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A length or dimension, as wide as the version has it.
    pub(crate) fn length(&mut self, what: &str) -> Result<u64> {
        match self.width {
            Width::Four => self.u32(what).map(u64::from),
            Width::Eight => self.u64(what),
        }
    }

    /// A count of things that take at least `least` bytes each; refused where the file cannot hold them.
    pub(crate) fn count(&mut self, least: usize, what: &str) -> Result<usize> {
        let count = self.length(what)?;
        let most = self.remaining() / least;
        match usize::try_from(count) {
            Ok(count) if count <= most => Ok(count),
            _ => bail!(InvalidFile, "{what} is {count}, but the rest of the file holds at most {most}"),
        }
    }

    /// A length and that many bytes of UTF-8.
    pub(crate) fn str(&mut self, what: &str) -> Result<&'a str> {
        let len = self.count(1, what)?;
        let at = self.at;
        let bytes = self.take(len, what)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(e) => {
                bail!(InvalidFile, "{what} at byte {at} is not UTF-8 (from its byte {} on)", e.valid_up_to())
            }
        }
    }
}
