//! IQ2_XS: 256 elements in 16 sub-blocks of 16, each with a 4-bit scale and two indices into a grid of 512 points.
//!
//! `x = (d * (0.5 + scale) * 0.25) * magnitude`, negative where the sign bit is set. Each group of 8 elements has a u16: the
//! index in its lower 9 bits, the sign bits (see [`SIGNS`]) in its upper 7. Byte `i` of the scales holds that of sub-block
//! `2 i` in its low and of `2 i + 1` in its high nibble. The grid is [`iq2_xs`](super::grids::iq2_xs).

use super::grid_fit::{Scheme, Signs};
use super::grids::{SIGNS, iq2_xs as grid};
use super::{bits, grid_fit};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 74;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the indices and signs: 32 u16.
pub const QUANTS: usize = 2;
/// Offset of the sub-blocks' scales: 8 bytes.
pub const SCALES: usize = 66;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 16;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (j, out) in out.chunks_exact_mut(SUB_ELEMS).enumerate() {
        let scale = d * (0.5 + f32::from(block[SCALES + j / 2] >> (4 * (j % 2)) & 15)) * 0.25;
        for (g, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
            let packed = bits::get_u16(block, QUANTS + 4 * j + 2 * g);
            let point = grid::POINTS[usize::from(packed & 511)].to_le_bytes();
            bits::put_signed(out, scale, point, SIGNS[usize::from(packed >> 9)]);
        }
    }
}

pub(super) static SCHEME: Scheme = Scheme {
    codes: &grid::CODES,
    levels: &[&[8.0, 25.0, 43.0]],
    group_elems: 8,
    sub_elems: SUB_ELEMS,
    multipliers: &grid_fit::halves(0.25),
    signs: Signs::Even,
};

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let fit = SCHEME.fit(x, weights);
    bits::put_f16(out, SCALE, fit.d);
    for (g, out) in out[QUANTS..SCALES].chunks_exact_mut(2).enumerate() {
        let packed = fit.points[g] | u16::from(fit.minus[g] & 127) << 9;
        out.copy_from_slice(&packed.to_le_bytes());
    }
    for (byte, scales) in out[SCALES..].iter_mut().zip(fit.scales.chunks_exact(2)) {
        *byte = scales[0] | scales[1] << 4;
    }
}
