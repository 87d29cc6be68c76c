//! Q8_0: 32 elements of 8 bits, one f16 scale.
//!
//! `x = q * d`.

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

/// Encodes one block without a search: `d = max|x| / 127`. Where a value is NaN or infinite, the whole block decodes to NaN.
pub(super) fn encode_plain(x: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    if x.iter().any(|v| !v.is_finite()) {
        out.fill(0);
        bits::put_f16(out, SCALE, f32::NAN);
        return;
    }
    let d = x.iter().fold(0f32, |m, v| m.max(v.abs())) / 127.0;
    bits::put_f16(out, SCALE, d);
    put_quants(x, d, out);
}

pub(super) fn encode_block(x: &[f32; ELEMS], _weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let d = bits::put_f16(out, SCALE, search::symmetric(x, &[1.0; ELEMS], 127));
    put_quants(x, d, out);
}

fn put_quants(x: &[f32; ELEMS], d: f32, out: &mut [u8; BYTES]) {
    let inverse = search::inverse(d);
    for (o, v) in out[QUANTS..].iter_mut().zip(x) {
        *o = search::nearest(v * inverse, -128, 127) as i8 as u8;
    }
}
