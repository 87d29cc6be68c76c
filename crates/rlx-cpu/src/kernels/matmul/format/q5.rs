//! q5_0 and q5_1: nibbles as in the four-bit formats, and a word of fifth bits per column.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use super::four_bit::{Nibbles, pack_halves};
use super::{Format, Quantized, lanes, u16_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// Fifth bits from the source's order (bit i is element i) to the order of the words: bit t of byte b is element
/// 4 t + b.
fn spread(source: u32) -> u32 {
    let mut word = 0;
    for i in 0..32 {
        word |= (source >> i & 1) << (8 * (i % 4) + i / 4);
    }
    word
}

#[inline(always)]
fn codes<S: Simd>(s: S, words: &Nibbles, fifth: &[u32; PANEL], t: usize, half: usize) -> S::I {
    let word = s.load_i(lanes(&words[t / 2], half));
    let low = s.and_i(if t.is_multiple_of(2) { word } else { s.shr(word, 4) }, s.splat_i(0x0f0f_0f0f));
    let fifth = s.load_i(lanes(fifth, half));
    let high = if t < 4 { s.shl(fifth, 4 - t as u32) } else { s.shr(fifth, t as u32 - 4) };
    s.or_i(low, s.and_i(high, s.splat_i(0x1010_1010)))
}

fn fifth_bits(source: &[u8], at: usize) -> u32 {
    spread(u32::from(u16_at(source, at)) | u32::from(u16_at(source, at + 2)) << 16)
}

/// Weights of block type `q5_0`.
#[derive(Clone, Copy, Debug)]
pub struct Q5_0;

/// 32 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block0 {
    scale: [u16; PANEL],
    fifth: [u32; PANEL],
    words: Nibbles,
}

impl Format for Q5_0 {
    const DTYPE: DType = DType::Block(BlockType::Q5_0);
    const K: usize = 32;
    type Block = Block0;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block0) {
        block.scale[column] = u16_at(source, 0);
        block.fifth[column] = fifth_bits(source, 2);
        pack_halves(&source[6..22], column, &mut block.words);
    }
}

impl Quantized for Q5_0 {
    const GROUP: usize = 32;
    const OFFSET: i32 = 16;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block0, _: usize, half: usize) -> (S::F, S::F) {
        (s.load_f16(lanes(&block.scale, half)), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block0, t: usize, half: usize) -> S::I {
        codes(s, &block.words, &block.fifth, t, half)
    }
}

/// Weights of block type `q5_1`.
#[derive(Clone, Copy, Debug)]
pub struct Q5_1;

/// 32 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block1 {
    scale: [u16; PANEL],
    minimum: [u16; PANEL],
    fifth: [u32; PANEL],
    words: Nibbles,
}

impl Format for Q5_1 {
    const DTYPE: DType = DType::Block(BlockType::Q5_1);
    const K: usize = 32;
    type Block = Block1;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block1) {
        block.scale[column] = u16_at(source, 0);
        block.minimum[column] = u16_at(source, 2);
        block.fifth[column] = fifth_bits(source, 4);
        pack_halves(&source[8..24], column, &mut block.words);
    }
}

impl Quantized for Q5_1 {
    const GROUP: usize = 32;
    const OFFSET: i32 = 0;
    const MINIMUM: bool = true;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block1, _: usize, half: usize) -> (S::F, S::F) {
        (s.load_f16(lanes(&block.scale, half)), s.load_f16(lanes(&block.minimum, half)))
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block1, t: usize, half: usize) -> S::I {
        codes(s, &block.words, &block.fifth, t, half)
    }
}
