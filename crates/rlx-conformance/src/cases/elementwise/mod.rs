//! Elementwise ops.
pub(super) mod binary;
pub(super) mod cast;
pub(super) mod compare;
pub(super) mod select;
pub(super) mod unary;
