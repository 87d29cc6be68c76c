//! IQ3_S: 256 elements in 8 sub-blocks of 32, each with a 4-bit scale and eight indices into a grid of 512 points.
//!
//! `x = (d * (1 + 2 * scale)) * magnitude`, negative where the sign bit is set. Group `g` of 4 elements has the low 8 bits
//! of its index in byte `g` of the indices and the upper bit at bit `g % 8` of byte `g / 8` of the high bits. Element `i`
//! has its sign at bit `i % 8` of byte `i / 8` of the signs. Byte `i` of the scales holds that of sub-block `2 i` in its
//! low and of `2 i + 1` in its high nibble. The grid is [`iq3_s`](super::grids::iq3_s).

use super::grid_fit::{Scheme, Signs};
use super::grids::iq3_s as grid;
use super::{bits, grid_fit};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 110;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the low 8 bits of the indices: 64 bytes.
pub const LOW_BITS: usize = 2;
/// Offset of the upper bits of the indices: 8 bytes.
pub const HIGH_BITS: usize = 66;
/// Offset of the signs: 32 bytes.
pub const MINUS: usize = 74;
/// Offset of the sub-blocks' scales: 4 bytes.
pub const SCALES: usize = 106;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 32;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (g, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let scale = d * f32::from(1 + 2 * (block[SCALES + g / 16] >> (g / 8 % 2 * 4) & 15));
        let high = usize::from(block[HIGH_BITS + g / 8] >> (g % 8) & 1);
        let point = grid::POINTS[usize::from(block[LOW_BITS + g]) | high << 8].to_le_bytes();
        bits::put_signed(out, scale, point, block[MINUS + g / 2] >> (g % 2 * 4));
    }
}

pub(super) static SCHEME: Scheme = Scheme {
    codes: &grid::CODES,
    levels: &[&[1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]],
    group_elems: 4,
    sub_elems: SUB_ELEMS,
    multipliers: &grid_fit::odds::<16>(),
    signs: Signs::Free,
};

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let fit = SCHEME.fit(x, weights);
    out.fill(0);
    bits::put_f16(out, SCALE, fit.d);
    for (g, point) in fit.points.into_iter().enumerate() {
        out[LOW_BITS + g] = point as u8;
        out[HIGH_BITS + g / 8] |= ((point >> 8) as u8) << (g % 8);
    }
    out[MINUS..SCALES].copy_from_slice(&fit.minus);
    for (byte, scales) in out[SCALES..].iter_mut().zip(fit.scales.chunks_exact(2)) {
        *byte = scales[0] | scales[1] << 4;
    }
}
