//! Ops that make one value of many along axes.

#[allow(clippy::module_inception)]
pub mod reduce;
