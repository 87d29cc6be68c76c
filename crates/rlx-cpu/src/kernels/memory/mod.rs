//! Movement of elements: gather, writes to state, strided copies, quantisation.

mod copy;
mod gather;
mod kv_write;
mod quantize;
#[cfg(test)]
mod tests;

pub use copy::copy_strided;
pub(super) use gather::Convert;
pub use gather::{gather_block_rows, gather_packed_rows, gather_rows};
pub use kv_write::kv_write;
pub use quantize::{dequantize, quantize};

use rlx_ir::bail;

use crate::error::{Error, Result};

/// An integer that counts rows.
pub trait Index: Copy + std::fmt::Display + TryInto<usize> {}

impl Index for i32 {}
impl Index for i64 {}
impl Index for u32 {}

/// An index as usize. Errors: `InvalidArgument` unless it is below `count`.
fn index(what: &str, place: usize, i: impl Index, count: usize) -> Result<usize> {
    match i.try_into() {
        Ok(i) if i < count => Ok(i),
        _ => bail!(InvalidArgument, "{what}: index {i} at place {place} is not below {count}"),
    }
}

/// All indices as usize.
///
/// Errors: `InvalidArgument` where one is not below `count`.
pub fn indices(what: &str, list: &[impl Index], count: usize) -> Result<Vec<usize>> {
    list.iter().enumerate().map(|(place, &i)| index(what, place, i, count)).collect()
}
