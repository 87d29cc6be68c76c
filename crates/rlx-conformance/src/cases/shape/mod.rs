//! Ops that move elements.
pub(super) mod broadcast;
pub(super) mod concat;
pub(super) mod pad;
pub(super) mod reshape;
pub(super) mod slice;
pub(super) mod transpose;
