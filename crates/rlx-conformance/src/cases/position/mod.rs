//! Positions.
pub(super) mod rope;
