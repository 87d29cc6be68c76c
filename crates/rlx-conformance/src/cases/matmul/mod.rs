//! Matrix products.
pub(super) mod linear;
#[allow(clippy::module_inception)]
pub(super) mod matmul;
