//! Q8_K: 256 elements of 8 bits, one f32 scale, and the sum of the quants of each 16 elements.
//!
//! `x = d * q`. ggml's activation format: the sums serve products with formats that have minimums, and decoding does not
//! use them.

use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 292;
/// Offset of the scale `d`: f32.
pub const SCALE: usize = 0;
/// Offset of the quants: 256 i8.
pub const QUANTS: usize = 4;
/// Offset of the sums: 16 i16, each of 16 quants.
pub const SUMS: usize = 260;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f32(block, SCALE);
    for (o, &q) in out.iter_mut().zip(&block[QUANTS..SUMS]) {
        *o = d * f32::from(q as i8);
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], _weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let d = x.iter().fold(0f32, |m, v| m.max(v.abs())) / 127.0;
    bits::put_f32(out, SCALE, d);
    let inverse = search::inverse(d);
    for (j, x) in x.chunks_exact(16).enumerate() {
        let mut sum = 0i16;
        for (o, v) in out[QUANTS + 16 * j..].iter_mut().zip(x) {
            let q = search::nearest(v * inverse, -127, 127);
            sum += q as i16;
            *o = q as i8 as u8;
        }
        out[SUMS + 2 * j..SUMS + 2 * j + 2].copy_from_slice(&sum.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sum_is_that_of_16_quants() {
        let x = std::array::from_fn(|i| (i as f32 * 0.7).sin());
        let mut block = [0; BYTES];
        encode_block(&x, &x, &mut block);
        for (j, sum) in block[SUMS..].chunks_exact(2).enumerate() {
            let quants = &block[QUANTS + 16 * j..][..16];
            let expected: i16 = quants.iter().map(|q| i16::from(*q as i8)).sum();
            assert_eq!(i16::from_le_bytes([sum[0], sum[1]]), expected);
        }
    }
}
