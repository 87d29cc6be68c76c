//! tq1_0, tq2_0 and q1_0: values of -1, 0 and 1 with one scale for the block.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, q1_0, tq1_0, tq2_0};

use super::{Format, Quantized, lanes, spread_bits, u16_at, u32_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// Weights of block type `tq1_0`.
#[derive(Clone, Copy, Debug)]
pub struct Tq1;

/// 256 elements of k of 32 columns: the source's words, of which each byte holds five ternary digits, or four in the last.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block1 {
    scale: [u16; PANEL],
    words: [[u32; PANEL]; 13],
}

impl Format for Tq1 {
    const DTYPE: DType = DType::Block(BlockType::TQ1_0);
    const K: usize = tq1_0::ELEMS;
    type Block = Block1;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block1) {
        block.scale[column] = u16_at(source, tq1_0::SCALE);
        for i in 0..13 {
            block.words[i][column] = u32_at(source, tq1_0::QUANTS + 4 * i);
        }
    }
}

impl Quantized for Tq1 {
    const GROUP: usize = 32;
    const OFFSET: i32 = 1;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block1, _: usize, half: usize) -> (S::F, S::F) {
        (s.load_f16(lanes(&block.scale, half)), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block1, t: usize, half: usize) -> S::I {
        let (word, digit) = match t {
            0..40 => (t % 8, t / 8),
            40..60 => (8 + (t - 40) % 4, (t - 40) / 4),
            _ => (12, t - 60),
        };
        let power = s.splat_i(i32::from(tq1_0::POWERS[digit]));
        let word = s.load_i(lanes(&block.words[word], half));
        // Two bytes at a time, each in 16 bits: what the power shifts out of a byte is dropped, then the digit is above.
        let bytes = s.splat_i(0x00ff_00ff);
        let even = s.and_i(s.mul_i(s.and_i(word, bytes), power), bytes);
        let odd = s.and_i(s.mul_i(s.and_i(s.shr(word, 8), bytes), power), bytes);
        let even = s.shr(s.add_i(even, s.add_i(even, even)), 8);
        let odd = s.add_i(odd, s.add_i(odd, odd));
        s.or_i(s.and_i(even, bytes), s.and_i(odd, s.splat_i(0xff00_ff00_u32 as i32)))
    }
}

/// Weights of block type `tq2_0`.
#[derive(Clone, Copy, Debug)]
pub struct Tq2;

/// 256 elements of k of 32 columns: the words lie as those of `q2_k`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block2 {
    scale: [u16; PANEL],
    words: [[u32; PANEL]; 16],
}

impl Format for Tq2 {
    const DTYPE: DType = DType::Block(BlockType::TQ2_0);
    const K: usize = tq2_0::ELEMS;
    type Block = Block2;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block2) {
        block.scale[column] = u16_at(source, tq2_0::SCALE);
        for i in 0..16 {
            block.words[i][column] = u32_at(source, tq2_0::QUANTS + 4 * i);
        }
    }
}

impl Quantized for Tq2 {
    const GROUP: usize = 32;
    const OFFSET: i32 = 1;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block2, _: usize, half: usize) -> (S::F, S::F) {
        (s.load_f16(lanes(&block.scale, half)), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block2, t: usize, half: usize) -> S::I {
        let word = s.load_i(lanes(&block.words[t / 32 * 8 + t % 8], half));
        s.and_i(s.shr(word, 2 * (t / 8 % 4) as u32), s.splat_i(0x0303_0303))
    }
}

/// Weights of block type `q1_0`.
#[derive(Clone, Copy, Debug)]
pub struct Q1;

/// 128 elements of k of 32 columns, a bit each.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockOne {
    scale: [u16; PANEL],
    words: [[u32; PANEL]; 4],
}

impl Format for Q1 {
    const DTYPE: DType = DType::Block(BlockType::Q1_0);
    const K: usize = q1_0::ELEMS;
    type Block = BlockOne;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockOne) {
        block.scale[column] = u16_at(source, q1_0::SCALE);
        for i in 0..4 {
            block.words[i][column] = u32_at(source, q1_0::QUANTS + 4 * i);
        }
    }
}

impl Quantized for Q1 {
    const GROUP: usize = 32;
    const OFFSET: i32 = 1;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockOne, _: usize, half: usize) -> (S::F, S::F) {
        (s.load_f16(lanes(&block.scale, half)), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockOne, t: usize, half: usize) -> S::I {
        let word = s.shr(s.load_i(lanes(&block.words[t / 8], half)), 4 * (t % 8) as u32);
        // 2 or 0: 1 or -1 with the offset.
        s.shl(spread_bits(s, s.and_i(word, s.splat_i(15))), 1)
    }
}
