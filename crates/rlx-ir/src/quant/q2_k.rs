//! Q2_K: 256 elements of 2 bits in 16 sub-blocks of 16, each with a 4-bit scale and a 4-bit minimum.
//!
//! `x = (d * scale) * q - dmin * minimum`. Each sub-block has one byte: the scale in its low and the minimum in its high
//! nibble. Each half of 128 elements is four runs of 32: element `i` of run `r` lies in bits `2 r` and `2 r + 1` of byte
//! `i` of the half's 32 bytes.

use super::bits;
use super::k_fit::Fit;

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 84;
/// Offset of the scales and minimums: 16 bytes.
pub const SCALES: usize = 0;
/// Offset of the quants: 64 bytes.
pub const QUANTS: usize = 16;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 80;
/// Offset of the scale of minimums `dmin`: f16.
pub const MINIMUM: usize = 82;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 16;

/// Byte and shift of element `i`.
fn place(i: usize) -> (usize, usize) {
    (QUANTS + i / 128 * 32 + i % 32, i % 128 / 32 * 2)
}

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    let dmin = bits::get_f16(block, MINIMUM);
    for (j, out) in out.chunks_exact_mut(SUB_ELEMS).enumerate() {
        let byte = block[SCALES + j];
        let (scale, minimum) = (d * f32::from(byte & 15), dmin * f32::from(byte >> 4));
        for (i, o) in out.iter_mut().enumerate() {
            let (at, shift) = place(SUB_ELEMS * j + i);
            *o = scale * f32::from(block[at] >> shift & 3) - minimum;
        }
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let fit = Fit::<16>::search(x, weights, 3, 15);
    out.fill(0);
    bits::put_f16(out, SCALE, fit.d);
    bits::put_f16(out, MINIMUM, fit.dmin);
    for (byte, (scale, minimum)) in out[SCALES..].iter_mut().zip(fit.scales.iter().zip(fit.minimums)) {
        *byte = scale | minimum << 4;
    }
    for (i, q) in fit.quants(x, 3).into_iter().enumerate() {
        let (at, shift) = place(i);
        out[at] |= q << shift;
    }
}
