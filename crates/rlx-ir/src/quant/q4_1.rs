//! Q4_1: 32 elements of 4 bits, an f16 scale and an f16 minimum.
//!
//! `x = q * d + m`: a product, then a sum, each rounded. Byte `i` of the quants holds element `i` in its low and
//! element `i + 16` in its high nibble.

use super::affine::{Minimum, affine};
use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 32;
/// Bytes per block.
pub const BYTES: usize = 20;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the minimum `m`: f16.
pub const MINIMUM: usize = 2;
/// Offset of the quants: 16 bytes.
pub const QUANTS: usize = 4;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    let m = bits::get_f16(block, MINIMUM);
    for (i, &byte) in block[QUANTS..].iter().enumerate() {
        out[i] = f32::from(byte & 15) * d + m;
        out[i + 16] = f32::from(byte >> 4) * d + m;
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let (d, m) = affine(x, weights, 15, Minimum::Free);
    let d = bits::put_f16(out, SCALE, d);
    let m = bits::put_f16(out, MINIMUM, m);
    let inverse = search::inverse(d);
    let quant = |v: f32| search::nearest((v - m) * inverse, 0, 15) as u8;
    for (i, byte) in out[QUANTS..].iter_mut().enumerate() {
        *byte = quant(x[i]) | quant(x[i + 16]) << 4;
    }
}
