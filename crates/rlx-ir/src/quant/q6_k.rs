//! Q6_K: 256 elements of 6 bits in 16 sub-blocks of 16, each with an 8-bit scale.
//!
//! `x = (d * scale) * (q - 32)`. Each half of 128 elements is four runs of 32: run `r`, element `i` has its low 4 bits
//! in byte `32 (r % 2) + i` of the half's 64 low bytes (low nibble in runs 0 and 1, high nibble in runs 2 and 3), and
//! its upper 2 bits in bits `2 r` and `2 r + 1` of byte `i` of the half's 32 high bytes.

use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 210;
/// Offset of the low four bits: 128 bytes.
pub const LOW_BITS: usize = 0;
/// Offset of the upper two bits: 64 bytes.
pub const HIGH_BITS: usize = 128;
/// Offset of the sub-blocks' scales: 16 i8.
pub const SCALES: usize = 192;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 208;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 16;

/// Where element `i` lies: byte of its low bits, their shift, byte of its high bits, their shift.
fn place(i: usize) -> (usize, usize, usize, usize) {
    let (half, run, i) = (i / 128, i % 128 / 32, i % 32);
    (LOW_BITS + 64 * half + 32 * (run % 2) + i, run / 2 * 4, HIGH_BITS + 32 * half + i, 2 * run)
}

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (j, out) in out.chunks_exact_mut(SUB_ELEMS).enumerate() {
        let scale = d * f32::from(block[SCALES + j] as i8);
        for (i, o) in out.iter_mut().enumerate() {
            let (low, low_shift, high, high_shift) = place(SUB_ELEMS * j + i);
            let q = block[low] >> low_shift & 15 | (block[high] >> high_shift & 3) << 4;
            *o = scale * f32::from(i16::from(q) - 32);
        }
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let scales: [f32; 16] = std::array::from_fn(|j| {
        let part = SUB_ELEMS * j..SUB_ELEMS * (j + 1);
        search::symmetric(&x[part.clone()], &weights[part], 31)
    });
    // The largest becomes -128, the one value of an i8 that has no opposite.
    let peak = scales.iter().fold(0f32, |m, &s| if s.abs() > m.abs() { s } else { m });
    let d = bits::put_f16(out, SCALE, peak / -128.0);
    out[..SCALES].fill(0);
    for (j, &scale) in scales.iter().enumerate() {
        let scale = search::nearest(scale * search::inverse(d), -128, 127) as i8;
        out[SCALES + j] = scale as u8;
        let inverse = search::inverse(d * f32::from(scale));
        for (i, v) in x[SUB_ELEMS * j..].iter().take(SUB_ELEMS).enumerate() {
            let q = (search::nearest(v * inverse, -32, 31) + 32) as u8;
            let (low, low_shift, high, high_shift) = place(SUB_ELEMS * j + i);
            out[low] |= (q & 15) << low_shift;
            out[high] |= q >> 4 << high_shift;
        }
    }
}
