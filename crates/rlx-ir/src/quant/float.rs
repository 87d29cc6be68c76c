//! Rows of f16 and bf16 to and from f32.
//!
//! Rounding is to nearest, ties to even; NaN stays NaN. All bytes are little endian.

use half::{bf16, f16};

use crate::{Error, Result, bail};

fn check(what: &str, elems: usize, bytes: usize) -> Result<()> {
    if elems.checked_mul(2) != Some(bytes) {
        bail!(InvalidArgument, "{what}: {elems} values take twice as many bytes, got {bytes}");
    }
    Ok(())
}

fn decode(what: &str, bytes: &[u8], out: &mut [f32], one: impl Fn([u8; 2]) -> f32) -> Result<()> {
    check(what, out.len(), bytes.len())?;
    for (b, o) in bytes.as_chunks().0.iter().zip(out) {
        *o = one(*b);
    }
    Ok(())
}

fn encode(what: &str, x: &[f32], out: &mut [u8], one: impl Fn(f32) -> [u8; 2]) -> Result<()> {
    check(what, x.len(), out.len())?;
    for (v, o) in x.iter().zip(out.as_chunks_mut().0) {
        *o = one(*v);
    }
    Ok(())
}

/// f16 bytes to f32, exactly. Errors: `InvalidArgument` where `bytes` is not twice as long as `out`.
pub fn decode_f16(bytes: &[u8], out: &mut [f32]) -> Result<()> {
    decode("decode f16", bytes, out, |b| f16::from_le_bytes(b).to_f32())
}

/// f32 to f16 bytes; what is beyond the range becomes infinite. Errors: as [`decode_f16`].
pub fn encode_f16(x: &[f32], out: &mut [u8]) -> Result<()> {
    encode("encode f16", x, out, |v| f16::from_f32(v).to_le_bytes())
}

/// bf16 bytes to f32, exactly. Errors: as [`decode_f16`].
pub fn decode_bf16(bytes: &[u8], out: &mut [f32]) -> Result<()> {
    decode("decode bf16", bytes, out, |b| bf16::from_le_bytes(b).to_f32())
}

/// f32 to bf16 bytes. Errors: as [`decode_f16`].
pub fn encode_bf16(x: &[f32], out: &mut [u8]) -> Result<()> {
    encode("encode bf16", x, out, |v| bf16::from_f32(v).to_le_bytes())
}
