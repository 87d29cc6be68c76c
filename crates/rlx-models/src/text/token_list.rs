//! The texts of a vocabulary in one block of memory, and an index from text to id.

/// Byte strings by number, stored end to end: 256,000 tokens cost two allocations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenList {
    bytes: Vec<u8>,
    /// Where each string ends in `bytes`; it starts where the one before it ends.
    ends: Vec<usize>,
    longest_bytes: usize,
}

impl TokenList {
    /// An empty list with room for `tokens` strings of `bytes` bytes in all.
    pub fn with_capacity(tokens: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(tokens), longest_bytes: 0 }
    }

    /// Adds a string; its number is the length before the call.
    pub fn push(&mut self, token: &[u8]) {
        self.bytes.extend_from_slice(token);
        self.ends.push(self.bytes.len());
        self.longest_bytes = self.longest_bytes.max(token.len());
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The length in bytes of the longest string.
    pub fn longest_bytes(&self) -> usize {
        self.longest_bytes
    }

    /// String number `id`.
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let i = id as usize;
        let end = *self.ends.get(i)?;
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        self.bytes.get(start..end)
    }

    /// All strings in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for TokenList {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let mut list = Self::default();
        for token in iter {
            list.push(token.as_ref());
        }
        list
    }
}

const EMPTY: u32 = u32::MAX;

/// An id and a part of its text's hash, so that most slots can be passed without looking at their texts.
#[derive(Clone, Copy)]
struct Slot {
    id: u32,
    tag: u32,
}

/// Finds the id of a text in a [`TokenList`]: an open-addressing table of ids that owns no text.
///
/// The hash is keyed at random per process, so that a hostile vocabulary cannot make look-ups slow.
#[derive(Clone)]
pub(crate) struct TokenIndex {
    slots: Vec<Slot>,
    hasher: ahash::RandomState,
}

impl TokenIndex {
    /// An index of the ids of `list` for which `keep` is true. Empty strings are left out; of two equal strings
    /// the later one wins.
    pub(crate) fn new(list: &TokenList, mut keep: impl FnMut(u32) -> bool) -> Self {
        let capacity = (list.len() * 2).next_power_of_two().max(8);
        let mut index =
            Self { slots: vec![Slot { id: EMPTY, tag: 0 }; capacity], hasher: ahash::RandomState::new() };
        for (id, token) in (0u32..EMPTY).zip(list.iter()) {
            if !token.is_empty() && keep(id) {
                let (at, tag) = index.slot_of(list, token);
                index.slots[at] = Slot { id, tag };
            }
        }
        index
    }

    /// The id whose string is `token`. `list` is the list that the index was made from.
    pub(crate) fn find(&self, list: &TokenList, token: &[u8]) -> Option<u32> {
        let id = self.slots[self.slot_of(list, token).0].id;
        (id != EMPTY).then_some(id)
    }

    /// The slot that holds `token`, or the empty slot where it belongs, and its tag. Half of the slots are empty at
    /// least, so the walk ends.
    fn slot_of(&self, list: &TokenList, token: &[u8]) -> (usize, u32) {
        let mask = self.slots.len() - 1;
        let hash = self.hasher.hash_one(token);
        let tag = (hash >> 32) as u32;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.id == EMPTY || (slot.tag == tag && list.get(slot.id) == Some(token)) {
                return (at, tag);
            }
            at = (at + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_number_and_numbers_by_text() {
        let list: TokenList = ["a", "", "bc", "a", "▁x"].into_iter().collect();
        assert_eq!(list.len(), 5);
        assert_eq!(list.get(2), Some(&b"bc"[..]));
        assert_eq!(list.get(5), None);
        assert_eq!(list.longest_bytes(), 4);
        let index = TokenIndex::new(&list, |id| id != 2);
        assert_eq!(index.find(&list, b"a"), Some(3), "the later of two equal texts");
        assert_eq!(index.find(&list, b""), None);
        assert_eq!(index.find(&list, b"bc"), None, "left out by the filter");
        assert_eq!(index.find(&list, "▁x".as_bytes()), Some(4));
    }

    #[test]
    fn an_empty_list_finds_nothing() {
        let list = TokenList::default();
        assert!(list.is_empty());
        assert_eq!(TokenIndex::new(&list, |_| true).find(&list, b"a"), None);
    }
}
