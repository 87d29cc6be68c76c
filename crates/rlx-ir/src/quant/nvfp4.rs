//! NVFP4: 64 elements in 4 sub-blocks of 16, each element a 4-bit float, each sub-block with an 8-bit float as scale.
//!
//! `x = d * VALUES[q]` with the values of [`e2m1`], which are doubled, and `d` half of the sub-block's scale,
//! a float of 4 bits exponent (bias 7) and 3 bits mantissa without sign; see [`scale`]. Sub-block `j` has bytes `8 j` to
//! `8 j + 7` of the quants: element `i` in the low and element `i + 8` in the high nibble of byte `i`.

use super::e2m1::{self, VALUES};
use super::{bits, search};

/// Elements per block.
pub const ELEMS: usize = 64;
/// Bytes per block.
pub const BYTES: usize = 36;
/// Offset of the sub-blocks' scales: 4 bytes.
pub const SCALES: usize = 0;
/// Offset of the quants: 32 bytes.
pub const QUANTS: usize = 4;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 16;
/// The largest magnitude that a block can hold.
pub const LARGEST: f32 = 224.0 * e2m1::LARGEST;

/// The largest code of a scale; the next would be NaN and decodes as 0.
const LAST_SCALE: u8 = 0x7e;

/// Half of the scale that `code` stands for, exactly. The top bit of a code is ignored, but for 0xff, which is 240 where
/// 0x7f is 0.
pub fn scale(code: u8) -> f32 {
    let (exponent, mantissa) = (u32::from(code >> 3 & 15), u32::from(code & 7));
    match (code, exponent) {
        (0x7f, _) => 0.0,
        (_, 0) => mantissa as f32 / 1024.0,
        _ => f32::from_bits((exponent + 119) << 23 | mantissa << 20),
    }
}

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    for (j, out) in out.chunks_exact_mut(SUB_ELEMS).enumerate() {
        let d = scale(block[SCALES + j]);
        bits::get_nibbles(&block[QUANTS + 8 * j..][..8], |i, q| {
            out[i] = d * f32::from(VALUES[usize::from(q)]);
        });
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], _weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    for (j, x) in x.as_chunks::<SUB_ELEMS>().0.iter().enumerate() {
        let code = best_scale(x);
        out[SCALES + j] = code;
        let inverse = search::inverse(scale(code));
        bits::put_nibbles(&mut out[QUANTS + 8 * j..][..8], &x.map(|v| e2m1::nearest(v * inverse)));
    }
}

/// The code of the scale with the least squared error.
fn best_scale(x: &[f32; SUB_ELEMS]) -> u8 {
    let largest = x.iter().fold(0f32, |m, v| m.max(v.abs()));
    let mut best = (e2m1::error(x, 0.0), 0);
    // A reach of less than half of the largest value is never the best. A far larger one may be, where the steps of small
    // scales are coarse; beyond the last limit the largest value is nearest to 0 or 1.
    for code in 1..=LAST_SCALE {
        let reach = e2m1::LARGEST * scale(code);
        if reach < 0.5 * largest && code < LAST_SCALE {
            continue;
        }
        let error = e2m1::error(x, scale(code));
        if error < best.0 {
            best = (error, code);
        }
        if reach > e2m1::LARGEST * largest {
            break;
        }
    }
    best.1
}
