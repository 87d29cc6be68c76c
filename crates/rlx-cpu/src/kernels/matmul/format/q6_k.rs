//! q6_k: 6 bits in groups of 16, each with an 8-bit scale.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use super::four_bit::{Nibbles, word};
use super::{Format, Quantized, lanes, u16_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// Weights of block type `q6_k`.
#[derive(Clone, Copy, Debug)]
pub struct Q6K;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block {
    scale: [u16; PANEL],
    pairs: [Pair; 8],
}

/// Two groups: 32 elements of k.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Pair {
    scales: [[u8; PANEL]; 2],
    low: Nibbles,
    /// For each group, bits 2 t and 2 t + 1 of byte b are the upper bits of its element 4 t + b.
    high: [[u32; PANEL]; 2],
}

impl Format for Q6K {
    const DTYPE: DType = DType::Block(BlockType::Q6_K);
    const K: usize = 256;
    type Block = Block;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block) {
        block.scale[column] = u16_at(source, 208);
        for (j, pair) in block.pairs.iter_mut().enumerate() {
            // Run `r` of half `h`: see the source format.
            let (h, r) = (j / 4, j % 4);
            let low = &source[64 * h + 32 * (r % 2)..][..32];
            let high = &source[128 + 32 * h..][..32];
            for i in 0..4 {
                let eight =
                    (0..8).rev().fold(0, |v, b| v << 8 | u64::from(low[8 * i + b] >> (r / 2 * 4) & 15));
                pair.low[i][column] = word(eight);
            }
            for g in 0..2 {
                pair.scales[g][column] = source[192 + 2 * j + g];
                pair.high[g][column] = (0..16).fold(0, |v, i| {
                    v | u32::from(high[16 * g + i] >> (2 * r) & 3) << (8 * (i % 4) + 2 * (i / 4))
                });
            }
        }
    }
}

impl Quantized for Q6K {
    const GROUP: usize = 16;
    const OFFSET: i32 = 32;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block, g: usize, half: usize) -> (S::F, S::F) {
        let steps = s.to_f(s.load_i8(lanes(&block.pairs[g / 2].scales[g % 2], half)));
        (s.mul(s.load_f16(lanes(&block.scale, half)), steps), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block, t: usize, half: usize) -> S::I {
        let pair = &block.pairs[t / 8];
        let word = s.load_i(lanes(&pair.low[t % 8 / 2], half));
        let low = s.and_i(if t.is_multiple_of(2) { word } else { s.shr(word, 4) }, s.splat_i(0x0f0f_0f0f));
        let high = s.load_i(lanes(&pair.high[t % 8 / 4], half));
        let high = match t % 4 {
            0 => s.shl(high, 4),
            1 => s.shl(high, 2),
            2 => high,
            _ => s.shr(high, 2),
        };
        s.or_i(low, s.and_i(high, s.splat_i(0x3030_3030)))
    }
}
