//! Block types.
pub(super) mod dequantize;
pub(super) mod quantize;
