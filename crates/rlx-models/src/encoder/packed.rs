//! Sequences packed over one token axis.

/// The inputs of one run of an encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The tokens of all sequences.
    pub ids: Vec<i32>,
    /// Their positions.
    pub positions: Vec<i32>,
    /// Where each sequence starts, and the number of tokens.
    pub starts: Vec<i32>,
    /// Where the prompt and then the text of each sequence starts, and the number of tokens.
    pub pool_starts: Vec<i32>,
}

impl Default for Packed {
    fn default() -> Self {
        Self { ids: Vec::new(), positions: Vec::new(), starts: vec![0], pool_starts: vec![0] }
    }
}

impl Packed {
    /// The number of tokens.
    pub fn tokens(&self) -> usize {
        self.ids.len()
    }

    /// The number of sequences.
    pub fn sequences(&self) -> usize {
        self.starts.len() - 1
    }

    /// Adds a sequence of tokens with their positions, whose first `prompt` tokens may be left out of pooling.
    pub fn push(&mut self, sequence: impl IntoIterator<Item = (i32, i32)>, prompt: usize) {
        let start = self.tokens();
        for (id, position) in sequence {
            self.ids.push(id);
            self.positions.push(position);
        }
        let end = self.tokens();
        self.pool_starts.push((start + prompt).min(end) as i32);
        self.pool_starts.push(end as i32);
        self.starts.push(end as i32);
    }

    /// Removes all sequences.
    pub fn clear(&mut self) {
        self.ids.clear();
        self.positions.clear();
        self.starts.truncate(1);
        self.pool_starts.truncate(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_follow_each_other() {
        let mut packed = Packed::default();
        packed.push([(5, 0), (6, 1)], 1);
        packed.push([], 0);
        packed.push([(7, 3)], 4);
        assert_eq!(packed.ids, [5, 6, 7]);
        assert_eq!(packed.positions, [0, 1, 3]);
        assert_eq!(packed.starts, [0, 2, 2, 3]);
        assert_eq!(packed.pool_starts, [0, 1, 2, 2, 2, 3, 3]);
        assert_eq!(packed.sequences(), 3);
        packed.clear();
        assert_eq!(packed, Packed::default());
    }
}
