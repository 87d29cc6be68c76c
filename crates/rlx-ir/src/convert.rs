//! Converting rows between dtypes through f32: what a weight source does when a graph wants another dtype than its file holds.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::quant::{decode_bf16, decode_f16, encode_bf16, encode_f16};

/// Decodes a row of any float or block dtype to f32.
///
/// # Errors
/// `InvalidArgument` where `dtype` is neither, or the sizes do not fit.
pub fn decode_row(dtype: DType, bytes: &[u8], out: &mut [f32]) -> Result<()> {
    if dtype.row_bytes(out.len()) != Some(bytes.len()) {
        crate::bail!(
            InvalidArgument,
            "{} bytes are no row of {} elements of {dtype}",
            bytes.len(),
            out.len()
        );
    }
    match dtype {
        DType::F32 => {
            for (o, b) in out.iter_mut().zip(bytes.as_chunks().0) {
                *o = f32::from_le_bytes(*b);
            }
        }
        DType::F64 => {
            for (o, b) in out.iter_mut().zip(bytes.as_chunks().0) {
                *o = f64::from_le_bytes(*b) as f32;
            }
        }
        DType::F16 => decode_f16(bytes, out)?,
        DType::BF16 => decode_bf16(bytes, out)?,
        DType::Block(block) => block.decode(bytes, out)?,
        other => crate::bail!(InvalidArgument, "{other} is no float type"),
    }
    Ok(())
}

/// Encodes a row of f32 to any float or block dtype.
///
/// # Errors
/// `InvalidArgument` where `dtype` is neither, or the sizes do not fit.
pub fn encode_row(dtype: DType, row: &[f32], importance: Option<&[f32]>, out: &mut [u8]) -> Result<()> {
    if dtype.row_bytes(row.len()) != Some(out.len()) {
        crate::bail!(InvalidArgument, "{} bytes are no row of {} elements of {dtype}", out.len(), row.len());
    }
    match dtype {
        DType::F32 => {
            for (o, v) in out.as_chunks_mut().0.iter_mut().zip(row) {
                *o = v.to_le_bytes();
            }
        }
        DType::F64 => {
            for (o, v) in out.as_chunks_mut().0.iter_mut().zip(row) {
                *o = f64::from(*v).to_le_bytes();
            }
        }
        DType::F16 => encode_f16(row, out)?,
        DType::BF16 => encode_bf16(row, out)?,
        DType::Block(block) => block.encode(row, importance, out)?,
        other => crate::bail!(InvalidArgument, "{other} is no float type"),
    }
    Ok(())
}

/// Converts one row between float or block dtypes while a model loads: blocks are made as
/// [`BlockType::encode_for_load`](crate::quant::BlockType::encode_for_load) says. `scratch` is reused between rows.
///
/// # Errors
/// `InvalidArgument` where a dtype is neither, or the sizes do not fit.
pub fn convert_row(
    from: DType,
    bytes: &[u8],
    to: DType,
    out: &mut [u8],
    elems: usize,
    scratch: &mut Vec<f32>,
) -> Result<()> {
    scratch.resize(elems, 0.0);
    decode_row(from, bytes, scratch)?;
    match to {
        DType::Block(block) => block.encode_for_load(scratch, out),
        _ => encode_row(to, scratch, None, out),
    }
}
