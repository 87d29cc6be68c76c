//! By index: the largest elements, rows by their places, and rows that go to their places.

mod argmax;
mod gather;
mod iota;
mod scatter;
#[cfg(test)]
mod tests;
mod top_k;

pub use argmax::argmax;
pub use gather::gather;
pub use iota::iota;
pub use scatter::{Rows, Summed, scatter_add, scatter_set};
pub use top_k::{Ordered, top_k};
