//! Q8_F32: 32 elements of 8 bits, one f32 scale. The format of quantised activations; it is never in a file.
//!
//! `x = q * d`. Encoding is fixed, so that every device makes the same bytes:
//! `d = max|x| / 127`, `id = 1 / d` (0 where `d` is 0), `q = round_ties_even(x * id)` limited to `-127..=127`, in f32. A
//! zero always gives `q = 0`. Where any element is NaN or infinite, `d` is NaN and all `q` are 0: the whole block then
//! decodes to NaN, so that a value that is not finite is never lost.

use super::bits;

/// Elements per block.
pub const ELEMS: usize = 32;
/// Bytes per block.
pub const BYTES: usize = 36;
/// Offset of the scale `d`: f32.
pub const SCALE: usize = 0;
/// Offset of the quants: 32 i8.
pub const QUANTS: usize = 4;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f32(block, SCALE);
    for (o, &q) in out.iter_mut().zip(&block[QUANTS..]) {
        *o = f32::from(q as i8) * d;
    }
}

/// Encodes one block: any values.
pub fn encode(x: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    if x.iter().any(|v| !v.is_finite()) {
        out.fill(0);
        bits::put_f32(out, SCALE, f32::NAN);
        return;
    }
    let d = x.iter().fold(0f32, |m, v| m.max(v.abs())) / 127.0;
    let inverse = if d > 0.0 { 1.0 / d } else { 0.0 };
    bits::put_f32(out, SCALE, d);
    for (o, &v) in out[QUANTS..].iter_mut().zip(x) {
        // The product is NaN only for a zero with an infinite inverse; the cast makes 0 of it.
        *o = (v * inverse).round_ties_even().clamp(-127.0, 127.0) as i8 as u8;
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], _weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    encode(x, out);
}
