//! IQ3_XXS: 256 elements in 8 sub-blocks of 32, each with a 4-bit scale and eight indices into a grid of 256 points.
//!
//! `x = (d * (0.5 + scale) * 0.5) * magnitude`, negative where the sign bit is set. Each group of 4 elements has one byte,
//! its index. Each sub-block has a u32: the 7 sign bits of its elements `8 i` to `8 i + 7` at bit `7 i` (see [`SIGNS`]) and
//! the scale in the upper 4 bits. The grid is [`iq3_xxs`](super::grids::iq3_xxs).

use super::grid_fit::{Scheme, Signs};
use super::grids::{SIGNS, iq3_xxs as grid};
use super::{bits, grid_fit};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 98;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the indices: 64 bytes.
pub const QUANTS: usize = 2;
/// Offset of the sub-blocks' signs and scales: 8 u32.
pub const SCALES: usize = 66;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 32;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (j, out) in out.chunks_exact_mut(SUB_ELEMS).enumerate() {
        let packed = bits::get_u32(block, SCALES + 4 * j);
        let scale = d * (0.5 + (packed >> 28) as f32) * 0.5;
        for (g, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let point = grid::POINTS[usize::from(block[QUANTS + 8 * j + g])].to_le_bytes();
            let minus = SIGNS[(packed >> (g / 2 * 7) & 127) as usize];
            bits::put_signed(out, scale, point, minus >> (g % 2 * 4));
        }
    }
}

pub(super) static SCHEME: Scheme = Scheme {
    codes: &grid::CODES,
    levels: &[&[4.0, 12.0, 20.0, 28.0, 36.0, 44.0, 52.0, 62.0]],
    group_elems: 4,
    sub_elems: SUB_ELEMS,
    multipliers: &grid_fit::halves(0.5),
    signs: Signs::Even,
};

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let fit = SCHEME.fit(x, weights);
    bits::put_f16(out, SCALE, fit.d);
    for (byte, point) in out[QUANTS..SCALES].iter_mut().zip(fit.points) {
        *byte = point as u8;
    }
    for (j, out) in out[SCALES..].chunks_exact_mut(4).enumerate() {
        let minus = fit.minus[4 * j..].iter().take(4).rev();
        let signs = minus.fold(0, |packed, m| packed << 7 | u32::from(m & 127));
        out.copy_from_slice(&(signs | u32::from(fit.scales[j]) << 28).to_le_bytes());
    }
}
