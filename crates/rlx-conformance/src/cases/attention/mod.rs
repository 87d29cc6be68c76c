//! Attention.
#[allow(clippy::module_inception)]
pub(super) mod attention;
pub(super) mod paged_attention;
