//! Ops with indices.
pub(super) mod argmax;
pub(super) mod gather;
pub(super) mod iota;
pub(super) mod scatter;
pub(super) mod top_k;
