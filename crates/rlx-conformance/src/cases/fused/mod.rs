//! Regions.
pub(super) mod fused_region;
