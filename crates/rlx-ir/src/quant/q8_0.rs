//! Q8_0: 32 elements of 8 bits, one f16 scale.
//!
//! `x = q * d`. Encoding takes `d = max|x| / 127` in f32, divides by that, and stores `d` rounded to f16.

use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 32;
/// Bytes per block.
pub const BYTES: usize = 34;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the quants: 32 i8.
pub const QUANTS: usize = 2;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (o, &q) in out.iter_mut().zip(&block[QUANTS..]) {
        *o = f32::from(q as i8) * d;
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], _weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let d = x.iter().fold(0f32, |m, v| m.max(v.abs())) / 127.0;
    bits::put_f16(out, SCALE, d);
    let inverse = search::inverse(d);
    for (o, v) in out[QUANTS..].iter_mut().zip(x) {
        *o = search::nearest(v * inverse, -127, 127) as i8 as u8;
    }
}
