//! IQ1_M: 256 elements in 16 sub-blocks of 16, each with a 3-bit scale and two groups of 8, each with a shift and an index
//! into a grid of 2048 points.
//!
//! `x = (d * (2 * scale + 1)) * (point + shift)`; points are -1, 0 or 1, the shift is 1/8, or -1/8 where its bit is set.
//! Group `g` has the low 8 bits of its index in byte `g`, and in nibble `g % 2` of byte `g / 2` of the high bits the upper 3
//! bits and the shift's sign. The scales are 4 u16: that of sub-block `j` at bit `3 (j % 4)` of word `j / 4`; the upper 4
//! bits of word `k` are bits `4 k` to `4 k + 3` of the f16 `d`. The grid is [`iq1`](super::grids::iq1).

use half::f16;

use super::grid_fit::{Scheme, Signs};
use super::grids::iq1 as grid;
use super::{bits, grid_fit};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 56;
/// Offset of the low 8 bits of the indices: 32 bytes.
pub const LOW_BITS: usize = 0;
/// Offset of the upper 3 bits of the indices and the shifts: 16 bytes.
pub const HIGH_BITS: usize = 32;
/// Offset of the sub-blocks' scales and of the parts of `d`: 4 u16.
pub const SCALES: usize = 48;
/// Elements per sub-block.
pub const SUB_ELEMS: usize = 16;
/// The magnitude of the shift.
pub const SHIFT: f32 = 0.125;

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let words: [u16; 4] = std::array::from_fn(|k| bits::get_u16(block, SCALES + 2 * k));
    let d = words.iter().rev().fold(0, |d, word| d << 4 | word >> 12);
    let d = f16::from_bits(d).to_f32();
    for (g, out) in out.as_chunks_mut().0.iter_mut().enumerate() {
        let scale = d * f32::from(2 * (words[g / 8] >> (g / 2 % 4 * 3) & 7) + 1);
        let high = block[HIGH_BITS + g / 2] >> (g % 2 * 4);
        let shift = if high & 8 == 0 { SHIFT } else { -SHIFT };
        let point = grid::POINTS[usize::from(block[LOW_BITS + g]) | usize::from(high & 7) << 8];
        bits::put_shifted(out, scale, point.to_le_bytes(), shift);
    }
}

pub(super) static SCHEME: Scheme = Scheme {
    codes: &grid::CODES,
    levels: &grid_fit::SHIFTED,
    group_elems: 8,
    sub_elems: SUB_ELEMS,
    multipliers: &grid_fit::odds::<8>(),
    signs: Signs::InPointsShiftedByGroup,
};

pub(super) fn encode_block(x: &[f32; ELEMS], weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let fit = SCHEME.fit(x, weights);
    out.fill(0);
    for g in 0..32 {
        out[LOW_BITS + g] = fit.points[g] as u8;
        out[HIGH_BITS + g / 2] |= ((fit.points[g] >> 8) as u8 | fit.levels[g] << 3) << (g % 2 * 4);
    }
    let d = f16::from_f32(fit.d).to_bits();
    for (k, out) in out[SCALES..].chunks_exact_mut(2).enumerate() {
        let mut word = d >> (4 * k) << 12;
        for i in 0..4 {
            word |= u16::from(fit.scales[4 * k + i]) << (3 * i);
        }
        out.copy_from_slice(&word.to_le_bytes());
    }
}
