//! IQ2_XXS: 256 elements in 8 sub-blocks of 32, each with a 4-bit scale and four indices into a grid of 256 points.
//!
//! `x = (d * (0.5 + scale) * 0.25) * magnitude`, negative where the sign bit is set. Sub-block `j` has 8 bytes: the indices
//! of its groups of 8 elements in 4 bytes, then a u32 with the 7 sign bits of group `g` at bit `7 g` (see [`SIGNS`]) and
//! the scale in the upper 4 bits. The grid is [`iq2_xxs`](super::grids::iq2_xxs).

use super::grid_fit::{Scheme, Signs};
use super::grids::{SIGNS, iq2_xxs as grid};
use super::{bits, grid_fit};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 66;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the sub-blocks' indices, signs and scales: 64 bytes, 8 per sub-block.
pub const QUANTS: usize = 2;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 32;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (j, out) in out.chunks_exact_mut(SUB_ELEMS).enumerate() {
        let at = QUANTS + 8 * j;
        let packed = bits::get_u32(block, at + 4);
        let scale = d * (0.5 + (packed >> 28) as f32) * 0.25;
        for (g, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
            let point = grid::POINTS[usize::from(block[at + g])].to_le_bytes();
            bits::put_signed(out, scale, point, SIGNS[(packed >> (7 * g) & 127) as usize]);
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
    for (j, out) in out[QUANTS..].chunks_exact_mut(8).enumerate() {
        let (points, rest) = out.split_at_mut(4);
        let mut packed = u32::from(fit.scales[j]) << 28;
        for (g, point) in points.iter_mut().enumerate() {
            *point = fit.points[4 * j + g] as u8;
            packed |= u32::from(fit.minus[4 * j + g] & 127) << (7 * g);
        }
        rest.copy_from_slice(&packed.to_le_bytes());
    }
}
