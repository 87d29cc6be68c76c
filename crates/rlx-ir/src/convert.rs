//! Conversions between dtypes: of rows, which is what a weight source does when a graph wants another dtype than
//! its file holds, and of wide numbers to f16 and bf16 with one rounding. (`from_f64` of those types may round twice, where the
//! processor converts by way of f32.)

use half::{bf16, f16};

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

/// How blocks are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEncoder {
    /// As the op `quantize` says: [`BlockType::encode`](crate::quant::BlockType::encode).
    Searching,
    /// As when a model is loaded in another dtype:
    /// [`BlockType::encode_for_load`](crate::quant::BlockType::encode_for_load).
    ForLoad,
}

/// Converts one row between float or block dtypes, with one rounding; blocks are made of values that are rounded to f32.
/// `scratch` is reused between rows.
///
/// # Errors
/// `InvalidArgument` where a dtype is neither, or the sizes do not fit.
pub fn convert_row(
    (from, bytes): (DType, &[u8]),
    (to, out): (DType, &mut [u8]),
    elems: usize,
    encoder: BlockEncoder,
    scratch: &mut Vec<f32>,
) -> Result<()> {
    if from == DType::F64 && to.is_float() {
        return narrow_row(bytes, to, out, elems);
    }
    scratch.resize(elems, 0.0);
    decode_row(from, bytes, scratch)?;
    match to {
        DType::Block(block) if encoder == BlockEncoder::ForLoad => block.encode_for_load(scratch, out),
        _ => encode_row(to, scratch, None, out),
    }
}

/// A row of f64 to any float dtype, not by way of f32.
fn narrow_row(bytes: &[u8], to: DType, out: &mut [u8], elems: usize) -> Result<()> {
    if DType::F64.row_bytes(elems) != Some(bytes.len()) || to.row_bytes(elems) != Some(out.len()) {
        let (from, to_bytes) = (bytes.len(), out.len());
        crate::bail!(InvalidArgument, "{from} bytes of f64 and {to_bytes} of {to} are no rows of {elems}");
    }
    fn each<const B: usize>(bytes: &[u8], out: &mut [u8], one: impl Fn(f64) -> [u8; B]) {
        for (o, b) in out.as_chunks_mut().0.iter_mut().zip(bytes.as_chunks().0) {
            *o = one(f64::from_le_bytes(*b));
        }
    }
    match to {
        DType::F32 => each(bytes, out, |v| (v as f32).to_le_bytes()),
        DType::F16 => each(bytes, out, |v| f16_from_f64(v).to_le_bytes()),
        DType::BF16 => each(bytes, out, |v| bf16_from_f64(v).to_le_bytes()),
        _ => out.copy_from_slice(bytes),
    }
    Ok(())
}

/// The f16 nearest to `v`, ties to even.
pub fn f16_from_f64(v: f64) -> f16 {
    f16::from_f32(to_f32_sticky(v))
}

/// The bf16 nearest to `v`, ties to even.
pub fn bf16_from_f64(v: f64) -> bf16 {
    bf16::from_f32(to_f32_sticky(v))
}

/// The f16 nearest to `v`, ties to even.
pub fn f16_from_i64(v: i64) -> f16 {
    f16_from_f64(to_f64_sticky(v))
}

/// The bf16 nearest to `v`, ties to even.
pub fn bf16_from_i64(v: i64) -> bf16 {
    bf16_from_f64(to_f64_sticky(v))
}

/// The f32 next to `v` toward zero, with its lowest bit set where `v` is not exact: a further rounding to f16 or bf16
/// then gives what one rounding of `v` gives (Boldo and Melquiond 2008, rounding to odd).
fn to_f32_sticky(v: f64) -> f32 {
    let nearest = v as f32;
    if f64::from(nearest) == v || v.is_nan() {
        return nearest;
    }
    let away = f64::from(nearest).abs() > v.abs();
    f32::from_bits((nearest.to_bits() - u32::from(away)) | 1)
}

/// As [`to_f32_sticky`], for integers that f64 cannot hold.
fn to_f64_sticky(v: i64) -> f64 {
    let nearest = v as f64;
    // Beyond 2^53 all f64 are integers; i128 holds 2^63.
    let (exact, rounded) = (i128::from(v), nearest as i128);
    if exact == rounded {
        return nearest;
    }
    let away = rounded.abs() > exact.abs();
    f64::from_bits((nearest.to_bits() - u64::from(away)) | 1)
}
