//! q5_k: 5 bits in groups of 32, each with a 6-bit scale and a 6-bit minimum.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, k_scales, q5_k};

use super::{Format, Quantized, lanes, u16_at, u32_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// Weights of block type `q5_k`.
#[derive(Clone, Copy, Debug)]
pub struct Q5K;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block {
    scale: [u16; PANEL],
    minimum: [u16; PANEL],
    scales: [[u8; PANEL]; 8],
    minimums: [[u8; PANEL]; 8],
    /// The source's words: word j of pair p holds elements 4 j to 4 j + 3 of group 2 p in its low, of 2 p + 1 in its high
    /// nibbles.
    low: [[u32; PANEL]; 32],
    /// The source's words: bit g of the bytes of word j is that of elements 4 j to 4 j + 3 of group g.
    high: [[u32; PANEL]; 8],
}

impl Format for Q5K {
    const DTYPE: DType = DType::Block(BlockType::Q5_K);
    const K: usize = 256;
    type Block = Block;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block) {
        block.scale[column] = u16_at(source, q5_k::SCALE);
        block.minimum[column] = u16_at(source, q5_k::MINIMUM);
        for i in 0..8 {
            (block.scales[i][column], block.minimums[i][column]) =
                k_scales::unpack(&source[q5_k::SCALES..q5_k::HIGH_BITS], i);
            block.high[i][column] = u32_at(source, q5_k::HIGH_BITS + 4 * i);
        }
        for i in 0..32 {
            block.low[i][column] = u32_at(source, q5_k::LOW_BITS + 4 * i);
        }
    }
}

impl Quantized for Q5K {
    const GROUP: usize = 32;
    const OFFSET: i32 = 0;
    const MINIMUM: bool = true;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block, g: usize, half: usize) -> (S::F, S::F) {
        let scale = s.to_f(s.load_u8(lanes(&block.scales[g], half)));
        let minimum = s.to_f(s.load_u8(lanes(&block.minimums[g], half)));
        (
            s.mul(s.load_f16(lanes(&block.scale, half)), scale),
            s.neg(s.mul(s.load_f16(lanes(&block.minimum, half)), minimum)),
        )
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block, t: usize, half: usize) -> S::I {
        let group = t / 8;
        let low = s.load_i(lanes(&block.low[group / 2 * 8 + t % 8], half));
        let low = s.and_i(s.shr(low, 4 * (group % 2) as u32), s.splat_i(0x0f0f_0f0f));
        let high = s.shr(s.load_i(lanes(&block.high[t % 8], half)), group as u32);
        s.or_i(low, s.shl(s.and_i(high, s.splat_i(0x0101_0101)), 4))
    }
}
