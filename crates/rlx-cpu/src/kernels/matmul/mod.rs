//! Matrix products.
//!
//! - [`packed`]: `x[M, K] · w[N, K]ᵀ` with a weight that was repacked once ([`Packed`]); float and block types.
//! - [`quantized`]: the same with an activation of block type `q8_f32`: exact integer dot products within a block.
//! - [`dense`]: batched products of two f32 operands with any strides.
//! - [`double`]: of two f64 operands.
//!
//! **Order of sums.** Every element of a result is accumulated in one f32 lane over ascending k with fused
//! multiply-adds (vector lanes are columns), whatever M, N, the blocking or the thread count. So a row has the same
//! bits in every batch. `quantized` accumulates block by block in the same way.

mod dense;
mod double;
mod epilogue;
pub mod format;
mod gemm;
mod gemv;
mod packed;
mod product;
mod quantized;
#[cfg(test)]
mod tests;
mod tile;

pub(crate) use epilogue::{load_part, store_part};
pub(crate) use gemm::Multiply;
pub(crate) use tile::Start;

pub use dense::{Operand, dense};
pub use double::{Right, double};
pub use epilogue::{Activation, Element, Epilogue, Residual};
pub use packed::{Arrangement, Line, Packed, PackedBuf, PackedShape, PackedStack, decode_row};
pub use product::{Rows, packed};
pub use quantized::quantized;

/// Columns of one panel of a packed weight.
pub const PANEL: usize = 32;
/// Depth of one block of the f32 product: a decoded panel of this depth fits the first-level cache.
pub(crate) const DEPTH: usize = 256;

/// One row of a panel: 32 columns of one k.
pub(crate) type PanelRow = [f32; PANEL];
/// A stretch of one row of the left operand.
pub(crate) type DepthRow = [f32; DEPTH];
