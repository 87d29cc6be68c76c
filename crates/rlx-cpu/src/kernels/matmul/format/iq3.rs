//! iq3_xxs and iq3_s: groups of 4 magnitudes from a grid, with signs.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, grids, iq3_s, iq3_xxs};

use super::grid::{OFFSET, even_signs, half_step, odd_step, signed};
use super::{Format, Quantized, lanes, u16_at, u32_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// Weights of block type `iq3_xxs`.
#[derive(Clone, Copy, Debug)]
pub struct Iq3Xxs;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockXxs {
    scale: [u16; PANEL],
    index: [[u8; PANEL]; 64],
    /// Signs and scale of 32 elements.
    packed: [[u32; PANEL]; 8],
}

impl Format for Iq3Xxs {
    const DTYPE: DType = DType::Block(BlockType::IQ3_XXS);
    const K: usize = iq3_xxs::ELEMS;
    type Block = BlockXxs;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockXxs) {
        block.scale[column] = u16_at(source, iq3_xxs::SCALE);
        for i in 0..64 {
            block.index[i][column] = source[iq3_xxs::QUANTS + i];
        }
        for i in 0..8 {
            block.packed[i][column] = u32_at(source, iq3_xxs::SCALES + 4 * i);
        }
    }
}

impl Quantized for Iq3Xxs {
    const GROUP: usize = iq3_xxs::SUB_ELEMS;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockXxs, g: usize, half: usize) -> (S::F, S::F) {
        let step = s.shr(s.load_i(lanes(&block.packed[g], half)), 28);
        (half_step(s, s.load_f16(lanes(&block.scale, half)), step, 0.5), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockXxs, t: usize, half: usize) -> S::I {
        let magnitudes = s.gather(&grids::iq3_xxs::POINTS, s.load_u8(lanes(&block.index[t], half)));
        let packed = s.load_i(lanes(&block.packed[t / 8], half));
        let seven = s.and_i(s.shr(packed, 7 * (t / 2 % 4) as u32), s.splat_i(127));
        signed(s, magnitudes, even_signs(s, seven, t % 2))
    }
}

/// Weights of block type `iq3_s`.
#[derive(Clone, Copy, Debug)]
pub struct Iq3S;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockS {
    scale: [u16; PANEL],
    steps: [[u8; PANEL]; 4],
    index: [[u8; PANEL]; 64],
    high: [[u8; PANEL]; 8],
    minus: [[u8; PANEL]; 32],
}

impl Format for Iq3S {
    const DTYPE: DType = DType::Block(BlockType::IQ3_S);
    const K: usize = iq3_s::ELEMS;
    type Block = BlockS;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockS) {
        block.scale[column] = u16_at(source, iq3_s::SCALE);
        for i in 0..4 {
            block.steps[i][column] = source[iq3_s::SCALES + i];
        }
        for i in 0..64 {
            block.index[i][column] = source[iq3_s::LOW_BITS + i];
        }
        for i in 0..8 {
            block.high[i][column] = source[iq3_s::HIGH_BITS + i];
        }
        for i in 0..32 {
            block.minus[i][column] = source[iq3_s::MINUS + i];
        }
    }
}

impl Quantized for Iq3S {
    const GROUP: usize = iq3_s::SUB_ELEMS;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockS, g: usize, half: usize) -> (S::F, S::F) {
        let step = s.shr(s.load_u8(lanes(&block.steps[g / 2], half)), 4 * (g % 2) as u32);
        let d = s.load_f16(lanes(&block.scale, half));
        (odd_step(s, d, s.and_i(step, s.splat_i(15))), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockS, t: usize, half: usize) -> S::I {
        let high = s.shr(s.load_u8(lanes(&block.high[t / 8], half)), (t % 8) as u32);
        let upper = s.shl(s.and_i(high, s.splat_i(1)), 8);
        let index = s.or_i(s.load_u8(lanes(&block.index[t], half)), upper);
        let minus = s.shr(s.load_u8(lanes(&block.minus[t / 2], half)), 4 * (t % 2) as u32);
        signed(s, s.gather(&grids::iq3_s::POINTS, index), s.and_i(minus, s.splat_i(15)))
    }
}
