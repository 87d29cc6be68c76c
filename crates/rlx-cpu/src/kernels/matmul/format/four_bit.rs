//! q4_0, q4_1 and q4_k: nibbles, in groups of 32 with a scale and, but for q4_0, a minimum.
//!
//! A word holds eight k of one column: byte b has k = 8 i + b in its low and k = 8 i + 4 + b in its high nibble.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, k_scales};

use super::{Format, Quantized, lanes, u16_at, u64_at};
use crate::kernels::matmul::PANEL;
use crate::simd::{Simd, array_of};

/// The words of 32 elements of k.
pub(super) type Nibbles = [[u32; PANEL]; 4];

const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;

/// Word of eight bytes that hold one nibble each.
pub(super) fn word(eight: u64) -> u32 {
    (eight & 0xffff_ffff) as u32 | ((eight >> 32) as u32) << 4
}

/// Fills the words of a column from 16 source bytes: element i in the low nibble of byte i, i + 16 in the high one.
#[inline(always)]
pub(super) fn pack_halves(source: &[u8], column: usize, words: &mut Nibbles) {
    for i in 0..2 {
        let eight = u64_at(source, 8 * i);
        words[i][column] = word(eight & LOW);
        words[i + 2][column] = word(eight >> 4 & LOW);
    }
}

#[inline(always)]
fn codes<S: Simd>(s: S, words: &Nibbles, t: usize, half: usize) -> S::I {
    let word = s.load_i(lanes(&words[t / 2], half));
    s.and_i(if t.is_multiple_of(2) { word } else { s.shr(word, 4) }, s.splat_i(0x0f0f_0f0f))
}

/// The four nibbles as floats.
#[inline(always)]
fn floats<S: Simd>(s: S, words: &Nibbles, t: usize, half: usize) -> [S::F; 4] {
    let word = s.load_i(lanes(&words[t / 2], half));
    let first = 4 * (t % 2) as u32;
    array_of!(s.zero(); 4, |i| {
        let by = 8 * i as u32 + first;
        s.nibble(if by == 0 { word } else { s.shr(word, by) })
    })
}

/// Weights of block type `q4_0`.
#[derive(Clone, Copy, Debug)]
pub struct Q4_0;

/// 32 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block0 {
    scale: [u16; PANEL],
    words: Nibbles,
}

impl Format for Q4_0 {
    const DTYPE: DType = DType::Block(BlockType::Q4_0);
    const K: usize = 32;
    type Block = Block0;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block0) {
        block.scale[column] = u16_at(source, 0);
        pack_halves(&source[2..18], column, &mut block.words);
    }
}

impl Quantized for Q4_0 {
    const GROUP: usize = 32;
    const OFFSET: i32 = 8;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block0, _: usize, half: usize) -> (S::F, S::F) {
        (s.load_f16(lanes(&block.scale, half)), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block0, t: usize, half: usize) -> S::I {
        codes(s, &block.words, t, half)
    }

    #[inline(always)]
    fn floats<S: Simd>(s: S, block: &Block0, t: usize, half: usize) -> [S::F; 4] {
        let quants = floats(s, &block.words, t, half);
        array_of!(s.zero(); 4, |i| s.sub(quants[i], s.splat(8.0)))
    }
}

/// Weights of block type `q4_1`.
#[derive(Clone, Copy, Debug)]
pub struct Q4_1;

/// 32 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Block1 {
    scale: [u16; PANEL],
    minimum: [u16; PANEL],
    words: Nibbles,
}

impl Format for Q4_1 {
    const DTYPE: DType = DType::Block(BlockType::Q4_1);
    const K: usize = 32;
    type Block = Block1;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut Block1) {
        block.scale[column] = u16_at(source, 0);
        block.minimum[column] = u16_at(source, 2);
        pack_halves(&source[4..20], column, &mut block.words);
    }
}

impl Quantized for Q4_1 {
    const GROUP: usize = 32;
    const OFFSET: i32 = 0;
    const MINIMUM: bool = true;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &Block1, _: usize, half: usize) -> (S::F, S::F) {
        (s.load_f16(lanes(&block.scale, half)), s.load_f16(lanes(&block.minimum, half)))
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &Block1, t: usize, half: usize) -> S::I {
        codes(s, &block.words, t, half)
    }

    #[inline(always)]
    fn floats<S: Simd>(s: S, block: &Block1, t: usize, half: usize) -> [S::F; 4] {
        floats(s, &block.words, t, half)
    }
}

/// Weights of block type `q4_k`.
#[derive(Clone, Copy, Debug)]
pub struct Q4K;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockK {
    scale: [u16; PANEL],
    minimum: [u16; PANEL],
    groups: [GroupK; 8],
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct GroupK {
    scale: [u8; PANEL],
    minimum: [u8; PANEL],
    words: Nibbles,
}

impl Format for Q4K {
    const DTYPE: DType = DType::Block(BlockType::Q4_K);
    const K: usize = 256;
    type Block = BlockK;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockK) {
        block.scale[column] = u16_at(source, 0);
        block.minimum[column] = u16_at(source, 2);
        for (j, group) in block.groups.iter_mut().enumerate() {
            (group.scale[column], group.minimum[column]) = k_scales::unpack(&source[4..16], j);
            // A run of 32 bytes holds group 2 r in its low and group 2 r + 1 in its high nibbles.
            let run = &source[16 + 32 * (j / 2)..];
            for i in 0..4 {
                group.words[i][column] = word(u64_at(run, 8 * i) >> (4 * (j % 2)) & LOW);
            }
        }
    }
}

impl Quantized for Q4K {
    const GROUP: usize = 32;
    const OFFSET: i32 = 0;
    const MINIMUM: bool = true;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockK, g: usize, half: usize) -> (S::F, S::F) {
        let group = &block.groups[g];
        let scale = s.to_f(s.load_u8(lanes(&group.scale, half)));
        let minimum = s.to_f(s.load_u8(lanes(&group.minimum, half)));
        (
            s.mul(s.load_f16(lanes(&block.scale, half)), scale),
            s.neg(s.mul(s.load_f16(lanes(&block.minimum, half)), minimum)),
        )
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockK, t: usize, half: usize) -> S::I {
        codes(s, &block.groups[t / 8].words, t % 8, half)
    }

    #[inline(always)]
    fn floats<S: Simd>(s: S, block: &BlockK, t: usize, half: usize) -> [S::F; 4] {
        floats(s, &block.groups[t / 8].words, t % 8, half)
    }
}
