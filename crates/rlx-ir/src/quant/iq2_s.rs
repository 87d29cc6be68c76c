//! IQ2_S: 256 elements in 16 sub-blocks of 16, each with a 4-bit scale and two indices into a grid of 1024 points.
//!
//! `x = (d * (0.5 + scale) * 0.25) * magnitude`, negative where the sign bit is set. Group `g` of 8 elements has the low 8
//! bits of its index in byte `g` of the indices, its sign bits in byte `g` of the signs, and the upper 2 bits of its index
//! at bit `2 (g % 4)` of byte `g / 4` of the high bits. Byte `i` of the scales holds that of sub-block `2 i` in its low and
//! of `2 i + 1` in its high nibble. The grid is [`iq2_s`](super::grids::iq2_s).

use super::grid_fit::{Scheme, Signs};
use super::grids::iq2_s as grid;
use super::{bits, grid_fit};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 82;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the low 8 bits of the indices: 32 bytes.
pub const LOW_BITS: usize = 2;
/// Offset of the signs: 32 bytes.
pub const MINUS: usize = 34;
/// Offset of the upper 2 bits of the indices: 8 bytes.
pub const HIGH_BITS: usize = 66;
/// Offset of the sub-blocks' scales: 8 bytes.
pub const SCALES: usize = 74;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 16;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (g, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let scale = d * (0.5 + f32::from(block[SCALES + g / 4] >> (g / 2 % 2 * 4) & 15)) * 0.25;
        let high = usize::from(block[HIGH_BITS + g / 4] >> (g % 4 * 2) & 3);
        let point = grid::POINTS[usize::from(block[LOW_BITS + g]) | high << 8].to_le_bytes();
        bits::put_signed(out, scale, point, block[MINUS + g]);
    }
}

pub(super) static SCHEME: Scheme = Scheme {
    codes: &grid::CODES,
    levels: &[&[8.0, 25.0, 43.0]],
    group_elems: 8,
    sub_elems: SUB_ELEMS,
    multipliers: &grid_fit::halves(0.25),
    signs: Signs::Free,
};

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let fit = SCHEME.fit(x, weights);
    out.fill(0);
    bits::put_f16(out, SCALE, fit.d);
    for g in 0..32 {
        out[LOW_BITS + g] = fit.points[g] as u8;
        out[MINUS + g] = fit.minus[g];
        out[HIGH_BITS + g / 4] |= (fit.points[g] >> 8 << (g % 4 * 2)) as u8;
    }
    for (byte, scales) in out[SCALES..].iter_mut().zip(fit.scales.chunks_exact(2)) {
        *byte = scales[0] | scales[1] << 4;
    }
}
