//! Q5_0: 32 elements of 5 bits, one f16 scale.
//!
//! `x = (q - 16) * d`. Byte `i` of the low bits holds element `i` in its low and element `i + 16` in its high nibble;
//! bit `i` of the high bits is the fifth bit of element `i`.

use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 32;
/// Bytes per block.
pub const BYTES: usize = 22;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the fifth bits: u32.
pub const HIGH_BITS: usize = 2;
/// Offset of the low four bits: 16 bytes.
pub const LOW_BITS: usize = 6;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    bits::get_fives(block, HIGH_BITS, LOW_BITS, |i, q| out[i] = f32::from(i16::from(q) - 16) * d);
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let d = bits::put_f16(out, SCALE, search::symmetric(x, weights, 15));
    let inverse = search::inverse(d);
    bits::put_fives(out, HIGH_BITS, LOW_BITS, |i| {
        (search::nearest(x[i] * inverse, -16, 15) + 16) as u8
    });
}
