//! q2_k: 2 bits in groups of 16, each with a 4-bit scale and a 4-bit minimum.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, q2_k};

use super::{Format, Quantized, lanes, u16_at, u32_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// Weights of block type `q2_k`.
#[derive(Clone, Copy, Debug)]
pub struct Q2K;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block {
    scale: [u16; PANEL],
    minimum: [u16; PANEL],
    /// Scale and minimum of a group, as in the source.
    steps: [[u8; PANEL]; 16],
    /// The source's words: word j of half h holds the elements 128 h + 32 r + 4 j to 4 j + 3 in bits 2 r and 2 r + 1 of its
    /// bytes.
    words: [[u32; PANEL]; 16],
}

impl Format for Q2K {
    const DTYPE: DType = DType::Block(BlockType::Q2_K);
    const K: usize = 256;
    type Block = Block;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block) {
        block.scale[column] = u16_at(source, q2_k::SCALE);
        block.minimum[column] = u16_at(source, q2_k::MINIMUM);
        for i in 0..16 {
            block.steps[i][column] = source[q2_k::SCALES + i];
            block.words[i][column] = u32_at(source, q2_k::QUANTS + 4 * i);
        }
    }
}

impl Quantized for Q2K {
    const GROUP: usize = 16;
    const OFFSET: i32 = 0;
    const MINIMUM: bool = true;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block, g: usize, half: usize) -> (S::F, S::F) {
        let steps = s.load_u8(lanes(&block.steps[g], half));
        let scale = s.to_f(s.and_i(steps, s.splat_i(15)));
        let minimum = s.to_f(s.shr(steps, 4));
        (
            s.mul(s.load_f16(lanes(&block.scale, half)), scale),
            s.neg(s.mul(s.load_f16(lanes(&block.minimum, half)), minimum)),
        )
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block, t: usize, half: usize) -> S::I {
        let word = s.load_i(lanes(&block.words[t / 32 * 8 + t % 8], half));
        s.and_i(s.shr(word, 2 * (t / 8 % 4) as u32), s.splat_i(0x0303_0303))
    }
}
