//! Bounds of the numbers in a config: far above any model that exists, and low enough that products fit into `usize`.

use rlx_ir::bail;

use crate::{Error, Result};

/// The most layers.
pub const MAX_LAYERS: usize = 1024;
/// The most attention heads of a layer.
pub const MAX_HEADS: usize = 4096;
/// The longest vector: hidden sizes, feed-forward sizes.
pub const MAX_WIDTH: usize = 1 << 20;
/// The most experts of a layer.
pub const MAX_EXPERTS: usize = 4096;
/// The most tokens of a vocabulary.
pub const MAX_VOCAB: usize = 1 << 22;
/// The most positions.
pub const MAX_POSITIONS: usize = 1 << 24;

/// `n`, if it lies in `1..=max`.
///
/// # Errors
/// `InvalidFile` naming `key`.
pub fn size(key: &str, n: usize, max: usize) -> Result<usize> {
    if !(1..=max).contains(&n) {
        bail!(InvalidFile, "{key} is {n}, expected 1 to {max}");
    }
    Ok(n)
}

/// `whole / parts`, if it has no remainder.
///
/// # Errors
/// `InvalidFile` naming both keys.
pub fn quotient(whole_key: &str, whole: usize, parts_key: &str, parts: usize) -> Result<usize> {
    if parts == 0 || !whole.is_multiple_of(parts) {
        bail!(InvalidFile, "{whole_key} is {whole}, which {parts_key} {parts} does not divide");
    }
    Ok(whole / parts)
}

/// `value`, if it is finite and above 0.
///
/// # Errors
/// `InvalidFile` naming `key`.
pub fn positive(key: &str, value: f64) -> Result<f64> {
    if !(value.is_finite() && value > 0.0) {
        bail!(InvalidFile, "{key} is {value}, expected a finite number above 0");
    }
    Ok(value)
}
