//! Q5_1: 32 elements of 5 bits, an f16 scale and an f16 minimum.
//!
//! `x = q * d + m`: a product, then a sum, each rounded. The bits lie as in [`q5_0`](super::q5_0).

use super::affine::{Minimum, affine};
use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 32;
/// Bytes per block.
pub const BYTES: usize = 24;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the minimum `m`: f16.
pub const MINIMUM: usize = 2;
/// Offset of the fifth bits: u32.
pub const HIGH_BITS: usize = 4;
/// Offset of the low four bits: 16 bytes.
pub const LOW_BITS: usize = 8;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    let m = bits::get_f16(block, MINIMUM);
    bits::get_fives(block, HIGH_BITS, LOW_BITS, |i, q| out[i] = f32::from(q) * d + m);
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let (d, m) = affine(x, weights, 31, Minimum::Free);
    let d = bits::put_f16(out, SCALE, d);
    let m = bits::put_f16(out, MINIMUM, m);
    let inverse = search::inverse(d);
    bits::put_fives(out, HIGH_BITS, LOW_BITS, |i| search::nearest((x[i] - m) * inverse, 0, 31) as u8);
}
