//! Ops that work on each element by itself.

pub mod binary;
pub mod cast;
pub mod compare;
pub mod select;
pub mod unary;
