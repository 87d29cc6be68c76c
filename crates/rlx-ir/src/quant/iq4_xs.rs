//! IQ4_XS: 256 elements of 4 bits in 8 sub-blocks of 32, each with a 6-bit scale; the quants select the values of
//! [`iq4_nl`](super::iq4_nl).
//!
//! `x = (d * (scale - 32)) * VALUES[q]`. The low 4 bits of scale `j` are a nibble of byte `j / 2` of the low scale bits
//! (low nibble where `j` is even), its upper 2 bits are bits `2 j` and `2 j + 1` of the high scale bits. Sub-block `j`
//! has bytes `16 j` to `16 j + 15` of the quants: element `i` in the low and element `i + 16` in the high nibble of byte
//! `i`.

use super::iq4_nl::VALUES;
use super::{bits, codebook, search};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 136;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the upper two bits of the scales: u16.
pub const SCALES_HIGH: usize = 2;
/// Offset of the low four bits of the scales: 4 bytes.
pub const SCALES_LOW: usize = 4;
/// Offset of the quants: 128 bytes.
pub const QUANTS: usize = 8;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 32;
/// Sub-blocks.
pub const SUB_BLOCKS: usize = 8;

/// The scale of sub-block `j` (below 8) of a block, -32 to 31.
pub fn sub_scale(block: &[u8; BYTES], j: usize) -> i8 {
    let low = block[SCALES_LOW + j / 2] >> (j % 2 * 4) & 15;
    let high = block[SCALES_HIGH + j / 4] >> (j % 4 * 2) & 3;
    (low | high << 4) as i8 - 32
}

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (j, out) in out.chunks_exact_mut(SUB_ELEMS).enumerate() {
        let scale = d * f32::from(sub_scale(block, j));
        bits::get_nibbles(&block[QUANTS + 16 * j..][..16], |i, q| {
            out[i] = scale * f32::from(VALUES[usize::from(q)]);
        });
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let (x, weights) = (x.as_chunks::<SUB_ELEMS>().0, weights.as_chunks::<SUB_ELEMS>().0);
    let scales: [f32; SUB_BLOCKS] = std::array::from_fn(|j| codebook::scale(&x[j], &weights[j]));
    let totals: [f32; SUB_BLOCKS] = std::array::from_fn(|j| weights[j].iter().sum());
    out.fill(0);
    let d = bits::put_f16(out, SCALE, search::symmetric(&scales, &totals, 31));
    for (j, &scale) in scales.iter().enumerate() {
        let error = |scale: i32| codebook::error(&x[j], &weights[j], d * scale as f32);
        let rounded = search::nearest(scale * search::inverse(d), -32, 31);
        // The scale was fitted before it was rounded: a neighbour may be better.
        let mut best = (error(rounded), rounded);
        for scale in (rounded - 1).max(-32)..=(rounded + 1).min(31) {
            let e = error(scale);
            if e < best.0 {
                best = (e, scale);
            }
        }
        let stored = (best.1 + 32) as u8;
        out[SCALES_LOW + j / 2] |= (stored & 15) << (j % 2 * 4);
        out[SCALES_HIGH + j / 4] |= stored >> 4 << (j % 4 * 2);
        let quants = codebook::quants(&x[j], d * best.1 as f32);
        bits::put_nibbles(&mut out[QUANTS + 16 * j..][..16], &quants);
    }
}
