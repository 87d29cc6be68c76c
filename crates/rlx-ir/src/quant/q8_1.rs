//! Q8_1: 32 elements of 8 bits, one f16 scale, and the f16 sum of the decoded values.
//!
//! `x = q * d`. ggml's activation format: the sum serves products with formats that have a minimum, and decoding does
//! not use it.

use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 32;
/// Bytes per block.
pub const BYTES: usize = 36;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 0;
/// Offset of `d` times the sum of the quants: f16.
pub const SUM: usize = 2;
/// Offset of the quants: 32 i8.
pub const QUANTS: usize = 4;

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
    let mut sum = 0;
    for (o, v) in out[QUANTS..].iter_mut().zip(x) {
        let q = search::nearest(v * inverse, -127, 127);
        sum += q;
        *o = q as i8 as u8;
    }
    bits::put_f16(out, SUM, d * sum as f32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_the_decoded_values() {
        let x = std::array::from_fn(|i| i as f32 - 4.0);
        let (mut block, mut y) = ([0; BYTES], [0.0; ELEMS]);
        encode_block(&x, &x, &mut block);
        decode_block(&block, &mut y);
        let sum: f32 = y.iter().sum();
        assert!((bits::get_f16(&block, SUM) - sum).abs() < 1e-3 * sum);
    }
}
