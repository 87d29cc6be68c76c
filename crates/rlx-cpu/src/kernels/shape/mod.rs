//! Movement of whole parts.

mod concat;
mod pad;
#[cfg(test)]
mod tests;

pub use concat::concat;
pub use pad::pad;
