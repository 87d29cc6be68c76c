//! Mixtures of experts.

#[allow(clippy::module_inception)]
pub(super) mod moe;
