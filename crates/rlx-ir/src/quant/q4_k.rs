//! Q4_K: 256 elements of 4 bits in 8 sub-blocks of 32, each with a 6-bit scale and a 6-bit minimum.
//!
//! `x = (d * scale) * q - dmin * minimum`. The quants lie in 4 runs of 32 bytes: byte `i` of run `r` holds element
//! `64 r + i` in its low and element `64 r + 32 + i` in its high nibble.

use super::k_scales;

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 144;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the scale of minimums `dmin`: f16.
pub const MINIMUM: usize = 2;
/// Offset of the packed scales and minimums: 12 bytes, see [`k_scales`].
pub const SCALES: usize = 4;
/// Offset of the quants: 128 bytes.
pub const QUANTS: usize = 16;

const FIELDS: [usize; 3] = [SCALE, MINIMUM, SCALES];

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    k_scales::decode(block, FIELDS, out, |i| {
        let byte = block[QUANTS + i / 64 * 32 + i % 32];
        if i % 64 < 32 { byte & 15 } else { byte >> 4 }
    });
}

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let quants = k_scales::encode(x, weights, 15, out, FIELDS);
    for (i, byte) in out[QUANTS..].iter_mut().enumerate() {
        let element = i / 32 * 64 + i % 32;
        *byte = quants[element] | quants[element + 32] << 4;
    }
}
