//! Q3_K: 256 elements of 3 bits in 16 sub-blocks of 16, each with a 6-bit scale.
//!
//! `x = (d * (scale - 32)) * (q - 4)`. The low two bits of the quants lie as in [`q2_k`](super::q2_k); the third bit of
//! element `i` of run `r` (counted over both halves) is bit `r` of byte `i` of the high bits. The scales' low 4 bits are
//! the nibbles of the first 8 scale bytes (scales 0 to 7 low, 8 to 15 high); the upper 2 bits of scale `j` are bits
//! `j / 4 * 2` and the next of scale byte `8 + j % 4`.

use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 110;
/// Offset of the third bits: 32 bytes.
pub const HIGH_BITS: usize = 0;
/// Offset of the low two bits: 64 bytes.
pub const LOW_BITS: usize = 32;
/// Offset of the packed scales: 12 bytes.
pub const SCALES: usize = 96;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 108;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 16;

/// Byte and shift of the low bits of element `i`, then of its third bit.
fn place(i: usize) -> (usize, usize, usize, usize) {
    (LOW_BITS + i / 128 * 32 + i % 32, i % 128 / 32 * 2, HIGH_BITS + i % 32, i / 32)
}

/// The scale of sub-block `j` (below 16), -32 to 31, from the packed scales.
pub fn unpack_scale(packed: &[u8], j: usize) -> i8 {
    let low = packed[j % 8] >> (j / 8 * 4) & 15;
    let high = packed[8 + j % 4] >> (j / 4 * 2) & 3;
    (low | high << 4) as i8 - 32
}

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (j, out) in out.chunks_exact_mut(SUB_ELEMS).enumerate() {
        let scale = d * f32::from(unpack_scale(&block[SCALES..], j));
        for (i, o) in out.iter_mut().enumerate() {
            let (low, low_shift, high, high_shift) = place(SUB_ELEMS * j + i);
            let q = block[low] >> low_shift & 3 | (block[high] >> high_shift & 1) << 2;
            *o = scale * f32::from(q as i8 - 4);
        }
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let part = |j: usize| SUB_ELEMS * j..SUB_ELEMS * (j + 1);
    let scales: [f32; 16] = std::array::from_fn(|j| search::symmetric(&x[part(j)], &weights[part(j)], 3));
    let totals: [f32; 16] = std::array::from_fn(|j| weights[part(j)].iter().sum());
    out.fill(0);
    let d = bits::put_f16(out, SCALE, search::symmetric(&scales, &totals, 31));
    for (j, &scale) in scales.iter().enumerate() {
        let error = |scale: i32| {
            search::symmetric_error(&x[part(j)], &weights[part(j)], 3, d * scale as f32)
        };
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
        out[SCALES + j % 8] |= (stored & 15) << (j / 8 * 4);
        out[SCALES + 8 + j % 4] |= stored >> 4 << (j / 4 * 2);
        let inverse = search::inverse(d * best.1 as f32);
        for (i, v) in x[part(j)].iter().enumerate() {
            let q = (search::nearest(v * inverse, -4, 3) + 4) as u8;
            let (low, low_shift, high, high_shift) = place(SUB_ELEMS * j + i);
            out[low] |= (q & 3) << low_shift;
            out[high] |= q >> 2 << high_shift;
        }
    }
}
