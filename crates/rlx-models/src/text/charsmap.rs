//! Sentencepiece's normaliser: `precompiled_charsmap` rewrites the longest known prefix, over and over.
//!
//! The format: the size of a trie in bytes (u32), the trie (a double array of u32, as Darts writes it), then the
//! replacements, each ended by a NUL. All integers are little-endian.

use rlx_ir::bail;

use super::GgufVocab;
use crate::{Error, Result};

/// A parsed `precompiled_charsmap`.
pub(super) struct Charsmap {
    trie: Vec<u32>,
    replacements: String,
}

impl Charsmap {
    /// The map of a vocabulary, if it has one.
    pub(super) fn of(vocab: &GgufVocab) -> Result<Option<Self>> {
        match vocab.precompiled_charsmap.as_slice() {
            [] => Ok(None),
            map => match Self::parse(map) {
                Ok(map) => Ok(Some(map)),
                Err(e) => Err(e.context("tokenizer.ggml.precompiled_charsmap")),
            },
        }
    }

    /// `InvalidFile` if the map is cut short or its replacements are no UTF-8.
    pub(super) fn parse(map: &[u8]) -> Result<Self> {
        let Some((head, rest)) = map.split_first_chunk::<4>() else {
            bail!(InvalidFile, "{} bytes hold no map", map.len());
        };
        let trie_bytes = u32::from_le_bytes(*head) as usize;
        if trie_bytes > rest.len() || !trie_bytes.is_multiple_of(4) {
            bail!(InvalidFile, "a trie of {trie_bytes} bytes does not fit into {}", rest.len());
        }
        let (trie, replacements) = rest.split_at(trie_bytes);
        let Ok(replacements) = std::str::from_utf8(replacements) else {
            bail!(InvalidFile, "the replacements are no UTF-8");
        };
        let trie = trie.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        Ok(Self { trie, replacements: replacements.to_owned() })
    }

    /// `InvalidFile` if some text leads out of the trie or into the middle of a replacement's character. [`Charsmap::apply`]
    /// takes such a key for none; the `tokenizers` crate panics on it.
    pub(super) fn check(&self) -> Result<()> {
        let Some(&root) = self.trie.first() else { bail!(InvalidFile, "the trie is empty") };
        let mut seen = vec![false; self.trie.len()];
        let mut pending = vec![offset(root)];
        while let Some(children) = pending.pop() {
            for byte in 1..=255 {
                let node = children ^ byte;
                let Some(&unit) = self.trie.get(node as usize) else {
                    bail!(InvalidFile, "the trie of {} units leads to unit {node}", self.trie.len());
                };
                if !is_child(unit, byte) {
                    continue;
                }
                let next = node ^ offset(unit);
                if unit & 0x100 != 0 {
                    let start = self.trie.get(next as usize).map(|&value| value & 0x7FFF_FFFF);
                    if !start.is_some_and(|start| self.replacements.is_char_boundary(start as usize)) {
                        bail!(InvalidFile, "a key of the trie leads to no replacement");
                    }
                }
                if !std::mem::replace(&mut seen[node as usize], true) {
                    pending.push(next);
                }
            }
        }
        Ok(())
    }

    /// `text`, rewritten.
    pub(super) fn apply(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(first) = text[at..].chars().next() {
            match self.longest_prefix(&text.as_bytes()[at..]) {
                Some((len, replacement)) if text.is_char_boundary(at + len) => {
                    out.push_str(replacement);
                    at += len;
                }
                _ => {
                    out.push(first);
                    at += first.len_utf8();
                }
            }
        }
        out
    }

    /// The longest key that `text` starts with: its length and its replacement.
    fn longest_prefix(&self, text: &[u8]) -> Option<(usize, &str)> {
        let mut found = None;
        let mut node = offset(*self.trie.first()?);
        for (i, &byte) in text.iter().enumerate() {
            node ^= u32::from(byte);
            let Some(&unit) = self.trie.get(node as usize) else { break };
            if !is_child(unit, u32::from(byte)) {
                break;
            }
            node ^= offset(unit);
            if unit & 0x100 != 0
                && let Some(&value) = self.trie.get(node as usize)
            {
                found = Some((i + 1, value & 0x7FFF_FFFF));
            }
        }
        let (len, start) = found?;
        let rest = self.replacements.get(start as usize..)?;
        Some((len, rest.split_once('\0').map_or(rest, |(replacement, _)| replacement)))
    }
}

/// Whether `unit` is that of a child by `byte`. The label is the lowest byte; a value, which is no node, has the highest bit
/// set.
fn is_child(unit: u32, byte: u32) -> bool {
    unit & 0x8000_00FF == byte
}

/// How far the children of a unit are.
fn offset(unit: u32) -> u32 {
    (unit >> 10) << ((unit & 0x200) >> 6)
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;

    use super::*;

    /// A trie with the one key "A", whose replacement is "aa".
    fn map() -> Vec<u8> {
        let mut trie = vec![0u32; 512];
        trie[0] = 1 << 10; // The children of the root are at 1 ^ byte.
        let node = 1 ^ usize::from(b'A');
        trie[node] = u32::from(b'A') | 0x100 | (2 << 10); // Its value is at node ^ 2.
        trie[node ^ 2] = 0x8000_0000 | 2;
        let mut map = (trie.len() as u32 * 4).to_le_bytes().to_vec();
        map.extend(trie.iter().flat_map(|u| u.to_le_bytes()));
        map.extend(b"b\0aa\0");
        map
    }

    #[test]
    fn known_prefixes_are_rewritten_and_the_rest_is_kept() {
        assert_eq!(Charsmap::parse(&map()).unwrap().apply("xA\0é"), "xaa\0é");
    }

    #[test]
    fn a_damaged_map_is_an_error_or_harmless() {
        assert_eq!(Charsmap::parse(&[1, 2]).err().unwrap().kind(), ErrorKind::InvalidFile);
        assert_eq!(Charsmap::parse(&map()[..100]).err().unwrap().kind(), ErrorKind::InvalidFile);
        let wild: Vec<u8> = 16u32.to_le_bytes().into_iter().chain([0xFF; 16]).chain(*b"x\0").collect();
        assert_eq!(Charsmap::parse(&wild).unwrap().apply("aé"), "aé");
    }

    #[test]
    fn a_map_that_leads_astray_is_found() {
        assert!(Charsmap::parse(&map()).unwrap().check().is_ok());
        let unit = |at: usize, unit: u32| {
            let mut map = map();
            map[4 + at * 4..8 + at * 4].copy_from_slice(&unit.to_le_bytes());
            Charsmap::parse(&map).unwrap().check()
        };
        let node = 1 ^ usize::from(b'A');
        assert!(unit(0, 600 << 10).unwrap_err().message().contains("leads to unit"), "the root's children");
        assert!(unit(node, u32::from(b'A') | 0x100 | (900 << 10)).is_err(), "a value beyond the trie");
        assert!(unit(node ^ 2, 0x8000_0000 | 99).is_err(), "a replacement beyond the end");
        assert!(Charsmap::parse(&[0; 4]).unwrap().check().is_err(), "no trie at all");
    }
}
