//! Vectors of texts.

use crate::Result;

/// The vector of one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedded {
    /// The vector.
    pub vector: Vec<f32>,
    /// The tokens that the network saw, added ones included.
    pub tokens: usize,
    /// Whether the end of the text was cut off.
    pub truncated: bool,
}

/// The vectors of several texts, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Embeddings {
    vectors: Vec<f32>,
    dim: usize,
    tokens: Vec<usize>,
    truncated: Vec<bool>,
}

impl Embeddings {
    /// Collects the results of texts; the first error ends it, and says which text it is about.
    pub(super) fn collect(results: impl IntoIterator<Item = Result<Embedded>>, dim: usize) -> Result<Self> {
        let mut out = Self { dim, ..Self::default() };
        for (i, result) in results.into_iter().enumerate() {
            let one = result.map_err(|e| e.context(format_args!("text {i}")))?;
            out.vectors.extend_from_slice(&one.vector);
            out.tokens.push(one.tokens);
            out.truncated.push(one.truncated);
        }
        Ok(out)
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The components of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// All vectors one after another: f32 [len, dim], row-major.
    pub fn vectors(&self) -> &[f32] {
        &self.vectors
    }

    /// All vectors one after another, without a copy.
    pub fn into_vectors(self) -> Vec<f32> {
        self.vectors
    }

    /// The vector of text `i`; `None` where there is no such text.
    pub fn get(&self, i: usize) -> Option<&[f32]> {
        self.vectors.get(i * self.dim..(i + 1) * self.dim).filter(|_| i < self.len())
    }

    /// The vectors in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        (0..self.len()).map(|i| &self[i])
    }

    /// The tokens of each text that the network saw, added ones included.
    pub fn tokens(&self) -> &[usize] {
        &self.tokens
    }

    /// Of each text, whether its end was cut off.
    pub fn truncated(&self) -> &[bool] {
        &self.truncated
    }
}

impl std::ops::Index<usize> for Embeddings {
    type Output = [f32];

    /// The vector of text `i`. Panics, like a slice, where there is no such text.
    fn index(&self, i: usize) -> &[f32] {
        &self.vectors[i * self.dim..(i + 1) * self.dim]
    }
}
