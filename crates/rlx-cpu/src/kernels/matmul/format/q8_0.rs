//! q8_0: signed bytes and an f16 scale for 32 elements.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use super::{Format, Quantized, lanes, u16_at, u64_at};
use crate::kernels::matmul::PANEL;
use crate::simd::{Simd, array_of};

/// Weights of block type `q8_0`.
#[derive(Clone, Copy, Debug)]
pub struct Q8_0;

/// 32 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block {
    scale: [u16; PANEL],
    /// Word t holds k = 4 t to 4 t + 3 of each column, as in the source.
    quants: [[u32; PANEL]; 8],
}

impl Format for Q8_0 {
    const DTYPE: DType = DType::Block(BlockType::Q8_0);
    const K: usize = 32;
    type Block = Block;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block) {
        block.scale[column] = u16_at(source, 0);
        for i in 0..4 {
            let eight = u64_at(source, 2 + 8 * i);
            block.quants[2 * i][column] = eight as u32;
            block.quants[2 * i + 1][column] = (eight >> 32) as u32;
        }
    }
}

impl Quantized for Q8_0 {
    const GROUP: usize = 32;
    const OFFSET: i32 = 128;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block, _: usize, half: usize) -> (S::F, S::F) {
        (s.load_f16(lanes(&block.scale, half)), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block, t: usize, half: usize) -> S::I {
        // Flipping the sign bit adds 128 to a signed byte.
        s.xor_i(s.load_i(lanes(&block.quants[t], half)), s.splat_i(0x8080_8080_u32 as i32))
    }

    #[inline(always)]
    fn floats<S: Simd>(s: S, block: &Block, t: usize, half: usize) -> [S::F; 4] {
        let quants = s.load_i(lanes(&block.quants[t], half));
        array_of!(s.zero(); 4, |i| {
            let up = 24 - 8 * i as u32;
            s.to_f(s.sra(if up == 0 { quants } else { s.shl(quants, up) }, 24))
        })
    }
}
