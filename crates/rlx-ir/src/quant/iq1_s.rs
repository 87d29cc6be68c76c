//! IQ1_S: 256 elements in 8 sub-blocks of 32, each with a 3-bit scale, a shift and four indices into a grid of 2048 points.
//!
//! `x = (d * (2 * scale + 1)) * (point + shift)`; points are -1, 0 or 1, the shift is 1/8, or -1/8 where its bit is set.
//! Each group of 8 elements has one byte, the low 8 bits of its index. Each sub-block has a u16: the upper 3 bits of the
//! index of group `g` at bit `3 g`, the scale at bit 12, the shift's sign at bit 15. The grid is
//! [`iq1`](super::grids::iq1).

use super::grid_fit::{Scheme, Signs};
use super::grids::iq1 as grid;
use super::{bits, grid_fit};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 50;
/// Offset of the scale of scales `d`: f16.
pub const SCALE: usize = 0;
/// Offset of the low 8 bits of the indices: 32 bytes.
pub const LOW_BITS: usize = 2;
/// Offset of the sub-blocks' upper bits of the indices, scales and shifts: 8 u16.
pub const SCALES: usize = 34;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 32;
/// The magnitude of the shift.
pub const SHIFT: f32 = 0.125;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (j, out) in out.chunks_exact_mut(SUB_ELEMS).enumerate() {
        let packed = bits::get_u16(block, SCALES + 2 * j);
        let scale = d * f32::from(2 * (packed >> 12 & 7) + 1);
        let shift = if packed >> 15 == 0 { SHIFT } else { -SHIFT };
        for (g, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
            let high = usize::from(packed >> (3 * g) & 7);
            let point = grid::POINTS[usize::from(block[LOW_BITS + 4 * j + g]) | high << 8];
            bits::put_shifted(out, scale, point.to_le_bytes(), shift);
        }
    }
}

pub(super) static SCHEME: Scheme = Scheme {
    codes: &grid::CODES,
    levels: &grid_fit::SHIFTED,
    group_elems: 8,
    sub_elems: SUB_ELEMS,
    multipliers: &grid_fit::odds::<8>(),
    signs: Signs::InPointsShiftedBySubBlock,
};

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let fit = SCHEME.fit(x, weights);
    bits::put_f16(out, SCALE, fit.d);
    for (byte, point) in out[LOW_BITS..SCALES].iter_mut().zip(fit.points) {
        *byte = point as u8;
    }
    for (j, out) in out[SCALES..].chunks_exact_mut(2).enumerate() {
        let mut packed = u16::from(fit.scales[j]) << 12 | u16::from(fit.levels[4 * j]) << 15;
        for g in 0..4 {
            packed |= fit.points[4 * j + g] >> 8 << (3 * g);
        }
        out.copy_from_slice(&packed.to_le_bytes());
    }
}
