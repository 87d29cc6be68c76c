//! Reductions.
#[allow(clippy::module_inception)]
pub(super) mod reduce;
