//! Tables of vectors.
#[allow(clippy::module_inception)]
pub(super) mod embedding;
