//! Q5_K: 256 elements of 5 bits in 8 sub-blocks of 32, each with a 6-bit scale and a 6-bit minimum.
//!
//! `x = (d * scale) * q - dmin * minimum`. The low four bits lie as the quants of [`q4_k`](super::q4_k); the fifth bit of
//! element `i` of sub-block `j` is bit `j` of byte `i` of the high bits.

use super::k_scales;

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 176;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the scale of minimums `dmin`: f16.
pub const MINIMUM: usize = 2;
/// Offset of the packed scales and minimums: 12 bytes, see [`k_scales`].
pub const SCALES: usize = 4;
/// Offset of the fifth bits: 32 bytes.
pub const HIGH_BITS: usize = 16;
/// Offset of the low four bits: 128 bytes.
pub const LOW_BITS: usize = 48;

const FIELDS: [usize; 3] = [SCALE, MINIMUM, SCALES];

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    k_scales::decode(block, FIELDS, out, |i| {
        let byte = block[LOW_BITS + i / 64 * 32 + i % 32];
        let low = if i % 64 < 32 { byte & 15 } else { byte >> 4 };
        low | (block[HIGH_BITS + i % 32] >> (i / 32) & 1) << 4
    });
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let quants = k_scales::encode(x, weights, 31, out, FIELDS);
    for (i, byte) in out[LOW_BITS..].iter_mut().enumerate() {
        let element = i / 32 * 64 + i % 32;
        *byte = quants[element] & 15 | quants[element + 32] << 4;
    }
    for (i, byte) in out[HIGH_BITS..LOW_BITS].iter_mut().enumerate() {
        *byte = (0..8).fold(0, |bits, j| bits | quants[32 * j + i] >> 4 << j);
    }
}
