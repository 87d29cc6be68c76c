//! Movement of whole parts.

mod concat;
#[cfg(test)]
mod tests;

pub use concat::concat;
