//! Ops that write states.
pub(super) mod kv_write;
