//! The pieces that a text starts with, found character by character.

use std::collections::HashMap;

use super::TokenList;

/// No piece ends at this node.
const NO_TOKEN: u32 = u32::MAX;

/// A trie over the characters of pieces. Of two equal pieces the later one wins.
pub(super) struct PieceTrie {
    /// The child of a node by a character. Keyed at random, so that a hostile vocabulary cannot make look-ups slow.
    children: HashMap<(u32, char), u32, ahash::RandomState>,
    /// The piece that ends at each node.
    tokens: Vec<u32>,
}

impl PieceTrie {
    /// A trie of the pieces of `list` for which `keep` is true. Empty ones and those that are no UTF-8 are left out: no
    /// text starts with them.
    pub(super) fn new(list: &TokenList, mut keep: impl FnMut(u32) -> bool) -> Self {
        let mut trie = Self {
            children: HashMap::with_capacity_and_hasher(list.len() * 3, ahash::RandomState::new()),
            tokens: vec![NO_TOKEN],
        };
        for (id, piece) in (0u32..).zip(list.iter()) {
            if let Ok(piece) = std::str::from_utf8(piece)
                && !piece.is_empty()
                && keep(id)
            {
                let mut node = 0;
                for c in piece.chars() {
                    let next = trie.tokens.len() as u32;
                    node = *trie.children.entry((node, c)).or_insert(next);
                    if node == next {
                        trie.tokens.push(NO_TOKEN);
                    }
                }
                trie.tokens[node as usize] = id;
            }
        }
        trie
    }

    /// The pieces that `text` starts with, shortest first: their lengths in bytes and their ids.
    pub(super) fn prefixes<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, u32)> + 'a {
        let mut node = 0;
        text.char_indices()
            .map_while(move |(at, c)| {
                node = *self.children.get(&(node, c))?;
                Some((at + c.len_utf8(), self.tokens[node as usize]))
            })
            .filter(|&(_, id)| id != NO_TOKEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_prefixes_are_found_shortest_first() {
        let list: TokenList = ["a", "abc", "é", "éa", "", "ab", "b", "ab"].into_iter().collect();
        let trie = PieceTrie::new(&list, |id| id != 6);
        let found = |text| trie.prefixes(text).collect::<Vec<_>>();
        assert_eq!(found("abcd"), [(1, 0), (2, 7), (3, 1)]);
        assert_eq!(found("éab"), [(2, 2), (3, 3)]);
        assert!(found("b").is_empty(), "left out by the filter");
        assert!(found("").is_empty());
    }
}
