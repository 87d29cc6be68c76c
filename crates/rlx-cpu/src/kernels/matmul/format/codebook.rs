//! iq4_nl, iq4_xs, mxfp4 and nvfp4: nibbles that select one of 16 values.

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, e2m1, iq4_nl, iq4_xs, mxfp4, nvfp4};

use super::{Format, Quantized, lanes, u16_at, u32_at};
use crate::kernels::matmul::PANEL;
use crate::simd::Simd;

/// What makes a signed value an unsigned byte.
const OFFSET: i32 = 128;

/// The values as quants.
const fn table(values: &[i8; 16]) -> [u8; 16] {
    let mut table = [0; 16];
    let mut i = 0;
    while i < 16 {
        table[i] = (values[i] as i32 + OFFSET) as u8;
        i += 1;
    }
    table
}

const UNEVEN: [u8; 16] = table(&iq4_nl::VALUES);
const E2M1: [u8; 16] = table(&e2m1::VALUES);

/// The quants that the nibbles of a word select: the low ones or, with a shift of 4, the high ones.
#[inline(always)]
fn select<S: Simd>(s: S, table: &[u8; 16], word: &[u32; PANEL], shift: u32, half: usize) -> S::I {
    let nibbles = s.and_i(s.shr(s.load_i(lanes(word, half)), shift), s.splat_i(0x0f0f_0f0f));
    s.lookup_bytes(table, nibbles)
}

/// Word and shift of quants 4 i to 4 i + 3 of 32, where element e has the low and e + 16 the high nibble of byte e.
#[inline(always)]
fn place(i: usize) -> (usize, u32) {
    (i % 4, 4 * (i / 4) as u32)
}

/// Weights of block type `iq4_nl`.
#[derive(Clone, Copy, Debug)]
pub struct Iq4Nl;

/// 32 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockNl {
    scale: [u16; PANEL],
    words: [[u32; PANEL]; 4],
}

impl Format for Iq4Nl {
    const DTYPE: DType = DType::Block(BlockType::IQ4_NL);
    const K: usize = iq4_nl::ELEMS;
    type Block = BlockNl;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockNl) {
        block.scale[column] = u16_at(source, iq4_nl::SCALE);
        for i in 0..4 {
            block.words[i][column] = u32_at(source, iq4_nl::QUANTS + 4 * i);
        }
    }
}

impl Quantized for Iq4Nl {
    const GROUP: usize = 32;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockNl, _: usize, half: usize) -> (S::F, S::F) {
        (s.load_f16(lanes(&block.scale, half)), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockNl, t: usize, half: usize) -> S::I {
        let (word, shift) = place(t);
        select(s, &UNEVEN, &block.words[word], shift, half)
    }
}

/// Weights of block type `iq4_xs`.
#[derive(Clone, Copy, Debug)]
pub struct Iq4Xs;

/// 256 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockXs {
    scale: [u16; PANEL],
    /// The upper bits of the groups' scales.
    high: [[u8; PANEL]; 2],
    low: [[u8; PANEL]; 4],
    words: [[u32; PANEL]; 32],
}

impl Format for Iq4Xs {
    const DTYPE: DType = DType::Block(BlockType::IQ4_XS);
    const K: usize = iq4_xs::ELEMS;
    type Block = BlockXs;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockXs) {
        block.scale[column] = u16_at(source, iq4_xs::SCALE);
        for i in 0..2 {
            block.high[i][column] = source[iq4_xs::SCALES_HIGH + i];
        }
        for i in 0..4 {
            block.low[i][column] = source[iq4_xs::SCALES_LOW + i];
        }
        for i in 0..32 {
            block.words[i][column] = u32_at(source, iq4_xs::QUANTS + 4 * i);
        }
    }
}

impl Quantized for Iq4Xs {
    const GROUP: usize = iq4_xs::SUB_ELEMS;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockXs, g: usize, half: usize) -> (S::F, S::F) {
        let low = s.shr(s.load_u8(lanes(&block.low[g / 2], half)), 4 * (g % 2) as u32);
        let high = s.shr(s.load_u8(lanes(&block.high[g / 4], half)), 2 * (g % 4) as u32);
        let low = s.and_i(low, s.splat_i(15));
        let high = s.shl(s.and_i(high, s.splat_i(3)), 4);
        let step = s.to_f(s.sub_i(s.or_i(low, high), s.splat_i(32)));
        (s.mul(s.load_f16(lanes(&block.scale, half)), step), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockXs, t: usize, half: usize) -> S::I {
        let (word, shift) = place(t % 8);
        select(s, &UNEVEN, &block.words[t / 8 * 4 + word], shift, half)
    }
}

/// Weights of block type `mxfp4`.
#[derive(Clone, Copy, Debug)]
pub struct Mxfp4;

/// 32 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockMx {
    exponent: [u8; PANEL],
    words: [[u32; PANEL]; 4],
}

impl Format for Mxfp4 {
    const DTYPE: DType = DType::Block(BlockType::MXFP4);
    const K: usize = mxfp4::ELEMS;
    type Block = BlockMx;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockMx) {
        block.exponent[column] = source[mxfp4::EXPONENT];
        for i in 0..4 {
            block.words[i][column] = u32_at(source, mxfp4::QUANTS + 4 * i);
        }
    }
}

impl Quantized for Mxfp4 {
    const GROUP: usize = 32;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockMx, _: usize, half: usize) -> (S::F, S::F) {
        // 2^(e - 128): the first two are subnormal.
        let e = s.load_u8(lanes(&block.exponent, half));
        let subnormal = s.bits_f(s.shl(s.add_i(e, s.splat_i(1)), 21));
        let normal = s.bits_f(s.shl(s.sub_i(e, s.splat_i(1)), 23));
        (s.select(s.lt(s.to_f(e), s.splat(2.0)), subnormal, normal), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockMx, t: usize, half: usize) -> S::I {
        let (word, shift) = place(t);
        select(s, &E2M1, &block.words[word], shift, half)
    }
}

/// Weights of block type `nvfp4`.
#[derive(Clone, Copy, Debug)]
pub struct Nvfp4;

/// 64 elements of k of 32 columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct BlockNv {
    scales: [[u8; PANEL]; 4],
    words: [[u32; PANEL]; 8],
}

impl Format for Nvfp4 {
    const DTYPE: DType = DType::Block(BlockType::NVFP4);
    const K: usize = nvfp4::ELEMS;
    type Block = BlockNv;

    #[inline(always)]
    fn pack(source: &[u8], column: usize, block: &mut BlockNv) {
        for i in 0..4 {
            block.scales[i][column] = source[nvfp4::SCALES + i];
        }
        for i in 0..8 {
            block.words[i][column] = u32_at(source, nvfp4::QUANTS + 4 * i);
        }
    }
}

impl Quantized for Nvfp4 {
    const GROUP: usize = nvfp4::SUB_ELEMS;
    const OFFSET: i32 = OFFSET;
    const MINIMUM: bool = false;

    #[inline(always)]
    fn scales<S: Simd>(s: S, block: &BlockNv, g: usize, half: usize) -> (S::F, S::F) {
        let code = s.load_u8(lanes(&block.scales[g], half));
        // The upper bit does not count, but for 0x7f and 0xff.
        let low = s.and_i(code, s.splat_i(0x7f));
        let normal = s.bits_f(s.add_i(s.shl(low, 20), s.splat_i(119 << 23)));
        let subnormal = s.mul(s.to_f(low), s.splat(1.0 / 1024.0));
        let scale = s.select(s.lt(s.to_f(low), s.splat(8.0)), subnormal, normal);
        (s.select(s.eq(s.to_f(code), s.splat(127.0)), s.zero(), scale), s.zero())
    }

    #[inline(always)]
    fn codes<S: Simd>(s: S, block: &BlockNv, t: usize, half: usize) -> S::I {
        // 16 elements have two words: element e the low and e + 8 the high nibble of byte e.
        let (word, shift) = (t / 4 * 2 + t % 2, 4 * (t / 2 % 2) as u32);
        select(s, &E2M1, &block.words[word], shift, half)
    }
}
