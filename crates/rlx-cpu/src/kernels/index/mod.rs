//! By index: the largest elements, and rows that go to their places.

mod scatter;
#[cfg(test)]
mod tests;
mod top_k;

pub use scatter::{Rows, Summed, scatter_add, scatter_set};
pub use top_k::{Ordered, top_k};
