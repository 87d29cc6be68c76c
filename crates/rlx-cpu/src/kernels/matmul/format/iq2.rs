//! iq2_xxs, iq2_xs and iq2_s: groups of 8 magnitudes from a grid, with signs.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, grids, iq2_s, iq2_xs, iq2_xxs};

use super::grid::{OFFSET, even_signs, half_step, load_u16, signed};
use super::{Format, Quantized, lanes, u16_at, u32_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// Half `t % 2` of point `index` of a grid.
#[inline(always)]
fn point<S: Simd, const N: usize>(s: S, words: &[u32; N], index: S::I, t: usize) -> S::I {
    s.gather(words, s.add_i(s.shl(index, 1), s.splat_i((t % 2) as i32)))
}

/// A nibble of the steps of groups 2 i and 2 i + 1, as a scale.
#[inline(always)]
fn nibble_scale<S: Simd>(s: S, d: &[u16; PANEL], steps: &[[u8; PANEL]; 8], g: usize, half: usize) -> S::F {
    let step = s.shr(s.load_u8(lanes(&steps[g / 2], half)), 4 * (g % 2) as u32);
    half_step(s, s.load_f16(lanes(d, half)), s.and_i(step, s.splat_i(15)), 0.25)
}

/// Weights of block type `iq2_xxs`.
#[derive(Clone, Copy, Debug)]
pub struct Iq2Xxs;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockXxs {
    scale: [u16; PANEL],
    index: [[u8; PANEL]; 32],
    /// Signs and scale of 32 elements.
    packed: [[u32; PANEL]; 8],
}

impl Format for Iq2Xxs {
    const DTYPE: DType = DType::Block(BlockType::IQ2_XXS);
    const K: usize = iq2_xxs::ELEMS;
    type Block = BlockXxs;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockXxs) {
        block.scale[column] = u16_at(source, iq2_xxs::SCALE);
        for i in 0..8 {
            let at = iq2_xxs::QUANTS + 8 * i;
            for g in 0..4 {
                block.index[4 * i + g][column] = source[at + g];
            }
            block.packed[i][column] = u32_at(source, at + 4);
        }
    }
}

impl Quantized for Iq2Xxs {
    const GROUP: usize = iq2_xxs::SUB_ELEMS;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockXxs, g: usize, half: usize) -> (S::F, S::F) {
        let step = s.shr(s.load_i(lanes(&block.packed[g], half)), 28);
        (half_step(s, s.load_f16(lanes(&block.scale, half)), step, 0.25), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockXxs, t: usize, half: usize) -> S::I {
        let group = t / 2;
        let words: &[u32; 512] = bytemuck::cast_ref(&grids::iq2_xxs::POINTS);
        let magnitudes = point(s, words, s.load_u8(lanes(&block.index[group], half)), t);
        let packed = s.load_i(lanes(&block.packed[group / 4], half));
        let seven = s.and_i(s.shr(packed, 7 * (group % 4) as u32), s.splat_i(127));
        signed(s, magnitudes, even_signs(s, seven, t % 2))
    }
}

/// Weights of block type `iq2_xs`.
#[derive(Clone, Copy, Debug)]
pub struct Iq2Xs;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockXs {
    scale: [u16; PANEL],
    steps: [[u8; PANEL]; 8],
    /// Index and signs of 8 elements.
    quants: [[u16; PANEL]; 32],
}

impl Format for Iq2Xs {
    const DTYPE: DType = DType::Block(BlockType::IQ2_XS);
    const K: usize = iq2_xs::ELEMS;
    type Block = BlockXs;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockXs) {
        block.scale[column] = u16_at(source, iq2_xs::SCALE);
        for i in 0..8 {
            block.steps[i][column] = source[iq2_xs::SCALES + i];
        }
        for i in 0..32 {
            block.quants[i][column] = u16_at(source, iq2_xs::QUANTS + 2 * i);
        }
    }
}

impl Quantized for Iq2Xs {
    const GROUP: usize = iq2_xs::SUB_ELEMS;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockXs, g: usize, half: usize) -> (S::F, S::F) {
        (nibble_scale(s, &block.scale, &block.steps, g, half), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockXs, t: usize, half: usize) -> S::I {
        let words: &[u32; 1024] = bytemuck::cast_ref(&grids::iq2_xs::POINTS);
        let quants = load_u16(s, lanes(&block.quants[t / 2], half));
        let magnitudes = point(s, words, s.and_i(quants, s.splat_i(511)), t);
        signed(s, magnitudes, even_signs(s, s.shr(quants, 9), t % 2))
    }
}

/// Weights of block type `iq2_s`.
#[derive(Clone, Copy, Debug)]
pub struct Iq2S;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockS {
    scale: [u16; PANEL],
    steps: [[u8; PANEL]; 8],
    index: [[u8; PANEL]; 32],
    high: [[u8; PANEL]; 8],
    minus: [[u8; PANEL]; 32],
}

impl Format for Iq2S {
    const DTYPE: DType = DType::Block(BlockType::IQ2_S);
    const K: usize = iq2_s::ELEMS;
    type Block = BlockS;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockS) {
        block.scale[column] = u16_at(source, iq2_s::SCALE);
        for i in 0..8 {
            block.steps[i][column] = source[iq2_s::SCALES + i];
            block.high[i][column] = source[iq2_s::HIGH_BITS + i];
        }
        for i in 0..32 {
            block.index[i][column] = source[iq2_s::LOW_BITS + i];
            block.minus[i][column] = source[iq2_s::MINUS + i];
        }
    }
}

impl Quantized for Iq2S {
    const GROUP: usize = iq2_s::SUB_ELEMS;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockS, g: usize, half: usize) -> (S::F, S::F) {
        (nibble_scale(s, &block.scale, &block.steps, g, half), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockS, t: usize, half: usize) -> S::I {
        let group = t / 2;
        let words: &[u32; 2048] = bytemuck::cast_ref(&grids::iq2_s::POINTS);
        let high = s.shr(s.load_u8(lanes(&block.high[group / 4], half)), 2 * (group % 4) as u32);
        let upper = s.shl(s.and_i(high, s.splat_i(3)), 8);
        let index = s.or_i(s.load_u8(lanes(&block.index[group], half)), upper);
        let minus = s.shr(s.load_u8(lanes(&block.minus[group], half)), 4 * (t % 2) as u32);
        signed(s, point(s, words, index, t), s.and_i(minus, s.splat_i(15)))
    }
}
