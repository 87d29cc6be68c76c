//! Calls that only move elements.

use super::{Call, Work};
use crate::args::CopyArgs;
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::{Joined, Layout};

/// Copies the elements of `x` to the layout `out`, which has the same sizes and dtype.
///
/// # Errors
/// `UnsupportedOnDevice` where there are too many axes or elements.
pub fn copy(x: &Layout, out: &Layout) -> Result<Call> {
    let joined = Joined::new(&x.shape, &[&x.strides, &out.strides]);
    // Kernels move bits: one type stands for each size.
    let kernel = match x.dtype.block_bytes() {
        1 => "copy_u8",
        2 => "copy_i16",
        4 => "copy_u32",
        8 => "copy_i64",
        _ => rlx_ir::bail!(UnsupportedOnDevice, "a copy of {}", x.dtype),
    };
    if x.shape != out.shape || x.dtype != out.dtype {
        rlx_ir::bail!(Bug, "a copy of {x:?} to {out:?}");
    }
    let args = CopyArgs {
        elems: index(x.elems())?,
        rank: index(joined.sizes.len())?,
        sizes: joined.sizes_arg()?,
        x_strides: joined.strides_arg(0)?,
        out_strides: joined.strides_arg(1)?,
    };
    Call::new(kernel, &args, 1, Work::PerElement(x.elems()))
}
