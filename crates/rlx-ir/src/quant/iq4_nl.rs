//! IQ4_NL: 32 elements of 4 bits that select one of 16 unevenly spaced values, one f16 scale.
//!
//! `x = d * VALUES[q]`. Byte `i` of the quants holds element `i` in its low and element `i + 16` in its high nibble.

use super::{bits, codebook};

/// Elements per block.
pub const ELEMS: usize = 32;
/// Bytes per block.
pub const BYTES: usize = 18;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the quants: 16 bytes.
pub const QUANTS: usize = 2;
/// What the 16 quants stand for, in units of the scale.
pub const VALUES: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    bits::get_nibbles(&block[QUANTS..], |i, q| out[i] = d * f32::from(VALUES[usize::from(q)]));
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let d = bits::put_f16(out, SCALE, codebook::scale(x, weights));
    bits::put_nibbles(&mut out[QUANTS..], &codebook::quants(x, d));
}
