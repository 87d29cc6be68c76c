//! iq1_s and iq1_m: groups of 8 from a grid of points -1, 0 and 1, shifted by an eighth up or down.
//!
//! Quants count eighths, so that the shift is one; the scales are an eighth of the source's.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, grids, iq1_m, iq1_s};

use super::grid::{OFFSET, load_u16, odd_step};
use super::{Format, Quantized, lanes, u16_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// Half `t % 2` of point `index`, in eighths; `down` is 1 where the shift is down.
#[inline(always)]
fn point<S: Simd>(s: S, index: S::I, t: usize, down: S::I) -> S::I {
    let words: &[u32; 4096] = bytemuck::cast_ref(&grids::iq1::POINTS);
    let word = s.gather(words, s.add_i(s.shl(index, 1), s.splat_i((t % 2) as i32)));
    // Bytes of -1, 0 and 1 become 0, 1 and 2 without carries.
    let low = s.add_i(s.and_i(word, s.splat_i(0x7f7f_7f7f)), s.splat_i(0x0101_0101));
    let digits = s.xor_i(low, s.and_i(word, s.splat_i(0x8080_8080_u32 as i32)));
    let up = s.add_i(s.shl(digits, 3), s.splat_i(0x0101_0101 * (OFFSET - 8 + 1)));
    s.sub_i(up, s.mul_i(down, s.splat_i(0x0202_0202)))
}

/// Weights of block type `iq1_s`.
#[derive(Clone, Copy, Debug)]
pub struct Iq1S;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockS {
    scale: [u16; PANEL],
    index: [[u8; PANEL]; 32],
    /// Upper bits of the indices, scale and shift of 32 elements.
    packed: [[u16; PANEL]; 8],
}

impl Format for Iq1S {
    const DTYPE: DType = DType::Block(BlockType::IQ1_S);
    const K: usize = iq1_s::ELEMS;
    type Block = BlockS;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockS) {
        block.scale[column] = u16_at(source, iq1_s::SCALE);
        for i in 0..32 {
            block.index[i][column] = source[iq1_s::LOW_BITS + i];
        }
        for i in 0..8 {
            block.packed[i][column] = u16_at(source, iq1_s::SCALES + 2 * i);
        }
    }
}

impl Quantized for Iq1S {
    const GROUP: usize = iq1_s::SUB_ELEMS;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockS, g: usize, half: usize) -> (S::F, S::F) {
        let step = s.and_i(s.shr(load_u16(s, lanes(&block.packed[g], half)), 12), s.splat_i(7));
        let scale = odd_step(s, s.load_f16(lanes(&block.scale, half)), step);
        (s.mul(scale, s.splat(0.125)), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockS, t: usize, half: usize) -> S::I {
        let group = t / 2;
        let packed = load_u16(s, lanes(&block.packed[group / 4], half));
        let high = s.and_i(s.shr(packed, 3 * (group % 4) as u32), s.splat_i(7));
        let index = s.or_i(s.load_u8(lanes(&block.index[group], half)), s.shl(high, 8));
        point(s, index, t, s.shr(packed, 15))
    }
}

/// Weights of block type `iq1_m`.
#[derive(Clone, Copy, Debug)]
pub struct Iq1M;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockM {
    /// Put together from the upper bits of `steps`.
    scale: [u16; PANEL],
    steps: [[u16; PANEL]; 4],
    index: [[u8; PANEL]; 32],
    high: [[u8; PANEL]; 16],
}

impl Format for Iq1M {
    const DTYPE: DType = DType::Block(BlockType::IQ1_M);
    const K: usize = iq1_m::ELEMS;
    type Block = BlockM;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockM) {
        let mut scale = 0;
        for i in 0..4 {
            let word = u16_at(source, iq1_m::SCALES + 2 * i);
            block.steps[i][column] = word;
            scale |= word >> 12 << (4 * i);
        }
        block.scale[column] = scale;
        for i in 0..32 {
            block.index[i][column] = source[iq1_m::LOW_BITS + i];
        }
        for i in 0..16 {
            block.high[i][column] = source[iq1_m::HIGH_BITS + i];
        }
    }
}

impl Quantized for Iq1M {
    const GROUP: usize = iq1_m::SUB_ELEMS;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockM, g: usize, half: usize) -> (S::F, S::F) {
        let word = load_u16(s, lanes(&block.steps[g / 4], half));
        let step = s.and_i(s.shr(word, 3 * (g % 4) as u32), s.splat_i(7));
        let scale = odd_step(s, s.load_f16(lanes(&block.scale, half)), step);
        (s.mul(scale, s.splat(0.125)), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockM, t: usize, half: usize) -> S::I {
        let group = t / 2;
        let high = s.shr(s.load_u8(lanes(&block.high[group / 2], half)), 4 * (group % 2) as u32);
        let upper = s.shl(s.and_i(high, s.splat_i(7)), 8);
        let index = s.or_i(s.load_u8(lanes(&block.index[group], half)), upper);
        point(s, index, t, s.and_i(s.shr(high, 3), s.splat_i(1)))
    }
}
