//! The tokens of a text.

/// The token ids of one text, special tokens included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The ids in order.
    pub ids: Vec<u32>,
    /// How many of the first ids were added and are no part of the text (BOS, CLS).
    pub num_prefix: usize,
    /// How many of the last ids were added (EOS, SEP).
    pub num_suffix: usize,
}

impl Encoding {
    /// How many tokens there are.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Cuts the end of the text, so that with the added tokens at most `max_tokens` are left. The added tokens stay,
    /// unless even they are too many. Returns whether anything was cut.
    pub fn truncate(&mut self, max_tokens: usize) -> bool {
        if self.ids.len() <= max_tokens {
            return false;
        }
        let suffix_start = self.ids.len() - self.num_suffix.min(self.ids.len());
        let keep = max_tokens.saturating_sub(self.num_suffix).max(self.num_prefix.min(suffix_start));
        self.ids.drain(keep..suffix_start);
        self.ids.truncate(max_tokens);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoding() -> Encoding {
        Encoding { ids: vec![101, 1, 2, 3, 102], num_prefix: 1, num_suffix: 1 }
    }

    #[test]
    fn added_tokens_stay() {
        let mut e = encoding();
        assert!(!e.truncate(5));
        assert!(e.truncate(3));
        assert_eq!(e.ids, [101, 1, 102]);
        assert!(e.truncate(2));
        assert_eq!(e.ids, [101, 102]);
    }

    #[test]
    fn a_limit_below_the_added_tokens_is_kept_too() {
        let mut e = encoding();
        assert!(e.truncate(1));
        assert_eq!(e.ids, [101]);
        assert!(e.truncate(0));
        assert!(e.is_empty());
    }
}
