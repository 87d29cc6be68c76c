//! Q1_0: 128 elements of 1 bit, one f16 scale.
//!
//! `x = d` where the bit is set, else `-d`. Element `i` is bit `i % 8` of byte `i / 8` of the quants.

use super::bits;

/// Elements per block.
pub const ELEMS: usize = 128;
/// Bytes per block.
pub const BYTES: usize = 18;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the quants: 16 bytes.
pub const QUANTS: usize = 2;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (i, o) in out.iter_mut().enumerate() {
        *o = if block[QUANTS + i / 8] >> (i % 8) & 1 == 1 { d } else { -d };
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], _weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    // The mean magnitude is the least-squares fit.
    let sum: f64 = x.iter().map(|v| f64::from(v.abs())).sum();
    bits::put_f16(out, SCALE, (sum / ELEMS as f64) as f32);
    for (byte, x) in out[QUANTS..].iter_mut().zip(x.chunks_exact(8)) {
        *byte = x.iter().enumerate().fold(0, |bits, (i, v)| bits | u8::from(*v >= 0.0) << i);
    }
}
