//! Where the tokens of a row stand.

/// How the position of a token follows from its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Positions {
    /// Its place, counted from 0; masked tokens count.
    Places,
    /// The number of tokens before it that are kept.
    Kept,
    /// `pad + 1` and the number of tokens before it that are no padding token, masked or not; a padding token stands at `pad`
    /// (RoBERTa).
    NonPadding {
        /// The padding token.
        pad: i32,
    },
}

impl Positions {
    /// The position of the first token.
    pub fn first(self) -> usize {
        match self {
            Self::Places | Self::Kept => 0,
            Self::NonPadding { pad } => usize::try_from(pad).map_or(0, |pad| pad + 1),
        }
    }

    /// The positions of the tokens of a row that are kept, given each token of the row and whether it is kept.
    pub fn of_row(self, row: impl IntoIterator<Item = (i64, bool)>) -> Vec<i32> {
        let mut next = self.first() as i32;
        let mut out = Vec::new();
        for (id, kept) in row {
            let (position, counts) = match self {
                Self::Places => (next, true),
                Self::Kept => (next, kept),
                Self::NonPadding { pad } if id == i64::from(pad) => (pad, false),
                Self::NonPadding { .. } => (next, true),
            };
            if kept {
                out.push(position);
            }
            next = next.saturating_add(i32::from(counts));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_counts_what_it_says() {
        let row = [(1, false), (7, true), (1, true), (9, false), (8, true)];
        assert_eq!(Positions::Places.of_row(row), [1, 2, 4]);
        assert_eq!(Positions::Kept.of_row(row), [0, 1, 2]);
        assert_eq!(Positions::NonPadding { pad: 1 }.of_row(row), [2, 1, 4]);
        assert_eq!(Positions::NonPadding { pad: 1 }.first(), 2);
    }
}
