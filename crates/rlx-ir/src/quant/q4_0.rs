//! Q4_0: 32 elements of 4 bits, one f16 scale.
//!
//! `x = (q - 8) * d`. Byte `i` of the quants holds element `i` in its low and element `i + 16` in its high nibble.

use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 32;
/// Bytes per block.
pub const BYTES: usize = 18;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the quants: 16 bytes.
pub const QUANTS: usize = 2;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (i, &byte) in block[QUANTS..].iter().enumerate() {
        out[i] = f32::from(i16::from(byte & 15) - 8) * d;
        out[i + 16] = f32::from(i16::from(byte >> 4) - 8) * d;
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let d = bits::put_f16(out, SCALE, search::symmetric(x, weights, 7));
    let inverse = search::inverse(d);
    let quant = |v: f32| (search::nearest(v * inverse, -8, 7) + 8) as u8;
    for (i, byte) in out[QUANTS..].iter_mut().enumerate() {
        *byte = quant(x[i]) | quant(x[i + 16]) << 4;
    }
}
