//! q3_k: 3 bits in groups of 16, each with a 6-bit scale.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, q3_k};

use super::{Format, Quantized, lanes, u16_at, u32_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// Weights of block type `q3_k`.
#[derive(Clone, Copy, Debug)]
pub struct Q3K;

/// 256 elements of k of 32 columns. All as in the source, byte after byte or word after word.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block {
    scale: [u16; PANEL],
    steps: [[u8; PANEL]; 12],
    low: [[u32; PANEL]; 16],
    high: [[u32; PANEL]; 8],
}

impl Format for Q3K {
    const DTYPE: DType = DType::Block(BlockType::Q3_K);
    const K: usize = 256;
    type Block = Block;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block) {
        block.scale[column] = u16_at(source, q3_k::SCALE);
        for i in 0..12 {
            block.steps[i][column] = source[q3_k::SCALES + i];
        }
        for i in 0..16 {
            block.low[i][column] = u32_at(source, q3_k::LOW_BITS + 4 * i);
        }
        for i in 0..8 {
            block.high[i][column] = u32_at(source, q3_k::HIGH_BITS + 4 * i);
        }
    }
}

impl Quantized for Q3K {
    const GROUP: usize = 16;
    const OFFSET: i32 = 4;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block, g: usize, half: usize) -> (S::F, S::F) {
        let low = s.shr(s.load_u8(lanes(&block.steps[g % 8], half)), 4 * (g / 8) as u32);
        let high = s.shr(s.load_u8(lanes(&block.steps[8 + g % 4], half)), 2 * (g / 4) as u32);
        let low = s.and_i(low, s.splat_i(15));
        let high = s.shl(s.and_i(high, s.splat_i(3)), 4);
        let step = s.to_f(s.sub_i(s.or_i(low, high), s.splat_i(32)));
        (s.mul(s.load_f16(lanes(&block.scale, half)), step), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block, t: usize, half: usize) -> S::I {
        let run = t / 8;
        let low = s.load_i(lanes(&block.low[run / 4 * 8 + t % 8], half));
        let low = s.and_i(s.shr(low, 2 * (run % 4) as u32), s.splat_i(0x0303_0303));
        let high = s.shr(s.load_i(lanes(&block.high[t % 8], half)), run as u32);
        s.or_i(low, s.shl(s.and_i(high, s.splat_i(0x0101_0101)), 2))
    }
}
