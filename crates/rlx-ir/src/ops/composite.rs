//! What composite ops share: operand checks, and the working precision of decompositions.
//!
//! A decomposition of a composite on f16 or bf16 works in f32 and rounds at its end, so that it rounds once, as the
//! composite does.

use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::operand_error;
use crate::types::{Shape, Type};

/// Checks that operand `index` is a float of rank `rank` or more.
pub(crate) fn check_float(index: usize, ty: &Type, rank: usize) -> Result<()> {
    if ty.dtype.is_float() && ty.rank() >= rank {
        return Ok(());
    }
    let expected = if rank == 0 { "a float".to_owned() } else { format!("a float of rank {rank} or more") };
    Err(operand_error(index, expected, ty))
}

/// Checks that operand `index` is a float of exactly this shape.
pub(crate) fn check_float_shape(index: usize, ty: &Type, shape: &Shape) -> Result<()> {
    if ty.dtype.is_float() && ty.shape == *shape {
        return Ok(());
    }
    Err(operand_error(index, format!("a float of shape {shape}"), ty))
}

/// Checks that operand `index` is an i32 vector.
pub(crate) fn check_i32_vector(index: usize, ty: &Type, what: &str) -> Result<()> {
    if ty.dtype == DType::I32 && ty.rank() == 1 {
        return Ok(());
    }
    Err(operand_error(index, format!("{what} as an i32 vector"), ty))
}

/// Checks that operand `index` is an i32 vector of `len` elements.
pub(crate) fn check_i32_len(index: usize, ty: &Type, what: &str, len: &Dim) -> Result<()> {
    check_i32_vector(index, ty, what)?;
    if ty.shape[0] == *len {
        return Ok(());
    }
    Err(operand_error(index, format!("{what}: i32[{len}]"), ty))
}

/// The precision that a decomposition works in: f64 where one of `values` has it, else f32.
pub(crate) fn wide_dtype(b: &Builder, values: &[Value]) -> DType {
    if values.iter().any(|&v| b.ty(v).dtype == DType::F64) { DType::F64 } else { DType::F32 }
}

/// `x` in `dtype`, without a cast where it has it.
pub(crate) fn cast_to(b: &mut Builder, x: Value, dtype: DType) -> Result<Value> {
    if b.ty(x).dtype == dtype { Ok(x) } else { b.cast(x, dtype) }
}

/// `x` times `factor`, without a product where that is 1.
pub(crate) fn scale_by(b: &mut Builder, x: Value, factor: f64) -> Result<Value> {
    if factor == 1.0 {
        return Ok(x);
    }
    let factor = b.scalar(b.ty(x).dtype, factor)?;
    b.mul(x, factor)
}
