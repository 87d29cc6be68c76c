//! Ops that work on each element by itself.

pub mod binary;
pub mod unary;
