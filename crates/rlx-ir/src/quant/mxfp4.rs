//! MXFP4: 32 elements, each a 4-bit float, with a power of two as scale. The format of the OCP Microscaling (MX)
//! specification 1.0.
//!
//! `x = d * VALUES[q]` with the values of [`e2m1`], which are doubled, and `d = 2^(e - 128)`, which is half
//! the specification's scale; every `e` from 0 to 255 has its power of two. Byte `i` of the quants holds element `i` in
//! its low and element `i + 16` in its high nibble.

use super::e2m1::{self, VALUES};
use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 32;
/// Bytes per block.
pub const BYTES: usize = 17;
/// Offset of the exponent `e`: u8.
pub const EXPONENT: usize = 0;
/// Offset of the quants: 16 bytes.
pub const QUANTS: usize = 1;

/// The scale `2^(e - 128)`, exactly.
pub fn scale(e: u8) -> f32 {
    f32::from_bits(match e {
        // Subnormal.
        0 | 1 => 1 << (21 + e),
        _ => u32::from(e - 1) << 23,
    })
}

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = scale(block[EXPONENT]);
    bits::get_nibbles(&block[QUANTS..], |i, q| out[i] = d * f32::from(VALUES[usize::from(q)]));
}

pub(super) fn encode_block(x: &[f32; ELEMS], _weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let largest = x.iter().fold(0f32, |m, v| m.max(v.abs()));
    // With this exponent the largest value lies between 4 and 8, in units of twice the scale.
    let plain = (largest.to_bits() >> 23) as i32 - 2;
    let mut best = (f64::INFINITY, 0);
    for e in plain - 1..=plain + 1 {
        let e = e.clamp(0, 254) as u8;
        let error = e2m1::error(x, scale(e));
        if error < best.0 {
            best = (error, e);
        }
    }
    out[EXPONENT] = best.1;
    let inverse = search::inverse(scale(best.1));
    bits::put_nibbles(&mut out[QUANTS..], &x.map(|v| e2m1::nearest(v * inverse)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_powers_of_two() {
        for e in 0..=255 {
            assert_eq!(f64::from(scale(e)), 2f64.powi(i32::from(e) - 128));
        }
    }
}
