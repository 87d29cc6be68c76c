//! Ops that a backend may run as a whole.
pub(super) mod embedding_block;
pub(super) mod pooling_head;
