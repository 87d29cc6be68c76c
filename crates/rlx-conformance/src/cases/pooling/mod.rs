//! One vector per sequence.
pub(super) mod l2_normalize;
pub(super) mod pool;
