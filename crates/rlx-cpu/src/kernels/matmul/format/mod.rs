//! Layouts of packed weights, one file per kind of dtype.
//!
//! A panel holds [`PANEL`] columns (rows of `w[N, K]`) as a run of blocks of [`Format::K`] consecutive k. Within a block,
//! what belongs to one k and 32 columns lies together, so that a vector of 16 lanes is 16 columns. Quants of four
//! consecutive k of one column share a 32-bit word, which is what the integer dot product wants and what the f32
//! path takes apart with shifts. A packed panel has the size of its source rows (`q4_k`: 148 bytes for 144).
//!
//! Every block format is [`Quantized`]: its quants are unsigned bytes, with an offset, one scale and perhaps one minimum for
//! 16 or 32 elements. From that [`unpack`] makes [`Codes`], which the kernels for all formats share. The formats that are met
//! most also implement [`Direct`], with which products of few rows decode in registers.

mod codebook;
mod float;
mod four_bit;
mod grid;
mod iq1;
mod iq2;
mod iq3;
mod q2_k;
mod q3_k;
mod q5;
mod q5_k;
mod q6_k;
mod q8_0;
mod table;
mod ternary;

pub use codebook::{Iq4Nl, Iq4Xs, Mxfp4, Nvfp4};
pub use float::{Bf16, F16, F32};
pub use four_bit::{Q4_0, Q4_1, Q4K};
pub use iq1::{Iq1M, Iq1S};
pub use iq2::{Iq2S, Iq2Xs, Iq2Xxs};
pub use iq3::{Iq3S, Iq3Xxs};
pub use q2_k::Q2K;
pub use q3_k::Q3K;
pub use q5::{Q5_0, Q5_1};
pub use q5_k::Q5K;
pub use q6_k::Q6K;
pub use q8_0::Q8_0;
pub(crate) use table::{block_arms, with_block, with_direct, with_float, with_format};
pub use ternary::{Q1, Tq1, Tq2};

use bytemuck::{Pod, Zeroable};
use rlx_ir::DType;

use super::{PANEL, PanelRow};
use crate::simd::{LANES, Simd, array_of};

/// Running sums of H rows and P panels.
pub type Sums<S, const H: usize, const P: usize> = [[[<S as Simd>::F; 2]; P]; H];

/// How one dtype is packed.
pub trait Format: Copy + Send + Sync + 'static {
    /// The dtype of the source.
    const DTYPE: DType;
    /// Elements of k in one block.
    const K: usize;
    /// One block of a panel.
    type Block: Pod + Send + Sync;

    /// Writes column `column` of a block from the bytes of `K` source elements.
    fn pack(source: &[u8], column: usize, block: &mut Self::Block);
}

/// A float dtype.
pub trait Floats: Format {
    /// Decodes the blocks into rows of a panel, `K` rows for each block.
    fn decode<S: Simd>(s: S, blocks: &[Self::Block], out: &mut [PanelRow]);
}

/// A dtype that products of few rows decode in registers.
pub trait Direct: Format {
    /// For H rows of x and the columns of P panels: `acc = fma(x[k], w[k], acc)` over all k in ascending order. The
    /// rows are as long as the panels are deep.
    fn accumulate<S: Simd, const H: usize, const P: usize>(
        s: S,
        panels: [&[Self::Block]; P],
        x: [&[f32]; H],
        acc: &mut Sums<S, H, P>,
    );
}

/// A block format.
pub trait Quantized: Format {
    /// Elements of k that share a scale: 16 or 32.
    const GROUP: usize;
    /// What is subtracted from a quant when it is decoded.
    const OFFSET: i32;
    /// Whether a minimum is added.
    const MINIMUM: bool;

    /// Scale and minimum of group `g` for 16 columns (`half` 0 or 1): a value is `(quant - OFFSET) * scale + minimum`.
    fn scales<S: Simd>(s: S, block: &Self::Block, g: usize, half: usize) -> (S::F, S::F);

    /// The quants (unsigned bytes) of k = 4 t to 4 t + 3 for 16 columns.
    fn codes<S: Simd>(s: S, block: &Self::Block, t: usize, half: usize) -> S::I;

    /// The quants of k = 4 t to 4 t + 3 as floats, with `OFFSET` subtracted.
    #[inline(always)]
    fn floats<S: Simd>(s: S, block: &Self::Block, t: usize, half: usize) -> [S::F; 4] {
        quants(s, Self::codes(s, block, t, half), s.splat_i(Self::OFFSET))
    }
}

/// 32 elements of k of 32 columns of any block format, unpacked.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Codes {
    /// Of the first and the last 16 elements; of all in the first, where groups are of 32.
    pub scales: [PanelRow; 2],
    /// As the scales, where the format has minimums.
    pub minimums: [PanelRow; 2],
    /// Word t holds the quants of k = 4 t to 4 t + 3.
    pub words: [[u32; PANEL]; 8],
}

/// What a format's quants mean, for kernels that see [`Codes`] only.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// [`Quantized::GROUP`].
    pub group: usize,
    /// [`Quantized::OFFSET`].
    pub offset: i32,
    /// [`Quantized::MINIMUM`].
    pub minimum: bool,
}

impl Meaning {
    /// That of a format.
    pub const fn of<Q: Quantized>() -> Self {
        Self { group: Q::GROUP, offset: Q::OFFSET, minimum: Q::MINIMUM }
    }
}

/// Unpacks blocks: `K / 32` entries of `out` for each.
#[inline(always)]
pub fn unpack<S: Simd, Q: Quantized>(s: S, blocks: &[Q::Block], out: &mut [Codes]) {
    let parts = Q::K / 32;
    let groups = 32 / Q::GROUP;
    for (block, out) in blocks.iter().zip(out.chunks_exact_mut(parts)) {
        for (part, out) in out.iter_mut().enumerate() {
            for half in 0..2 {
                for g in 0..groups {
                    let (scale, minimum) = Q::scales(s, block, groups * part + g, half);
                    s.store(scale, lanes_mut(&mut out.scales[g], half));
                    if Q::MINIMUM {
                        s.store(minimum, lanes_mut(&mut out.minimums[g], half));
                    }
                }
                for t in 0..8 {
                    s.store_i(Q::codes(s, block, 8 * part + t, half), lanes_mut(&mut out.words[t], half));
                }
            }
        }
    }
}

/// Decodes [`Codes`] into rows of a panel, 32 for each.
#[inline(always)]
pub fn decode<S: Simd>(s: S, codes: &[Codes], meaning: Meaning, out: &mut [PanelRow]) {
    if meaning.minimum {
        decode_with::<S, true>(s, codes, meaning, out);
    } else {
        decode_with::<S, false>(s, codes, meaning, out);
    }
}

#[inline(always)]
fn decode_with<S: Simd, const MINIMUM: bool>(s: S, codes: &[Codes], meaning: Meaning, out: &mut [PanelRow]) {
    let offset = s.splat_i(meaning.offset);
    let last_group = 32 / meaning.group - 1;
    for (codes, out) in codes.iter().zip(out.as_chunks_mut::<32>().0) {
        for (t, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let g = (t / 4).min(last_group);
            for half in 0..2 {
                let w = values_of::<S, MINIMUM>(s, codes, (t, g, half), offset);
                for i in 0..4 {
                    s.store(w[i], lanes_mut(&mut out[i], half));
                }
            }
        }
    }
}

/// The decoded values of word `t`, which is in group `g`, of half the columns.
#[inline(always)]
pub fn values_of<S: Simd, const MINIMUM: bool>(
    s: S,
    codes: &Codes,
    (t, g, half): (usize, usize, usize),
    offset: S::I,
) -> [S::F; 4] {
    let q = quants(s, s.load_i(lanes(&codes.words[t], half)), offset);
    let scale = s.load(lanes(&codes.scales[g], half));
    if MINIMUM {
        // The product with a quant is exact, so fusing it with the minimum rounds as two steps would.
        let minimum = s.load(lanes(&codes.minimums[g], half));
        array_of!(s.zero(); 4, |i| s.fma(q[i], scale, minimum))
    } else {
        array_of!(s.zero(); 4, |i| s.mul(q[i], scale))
    }
}

/// Bit b of a lane (the others 0) as byte b: 0 or 1.
#[inline(always)]
fn spread_bits<S: Simd>(s: S, four: S::I) -> S::I {
    // Copies 7 bits apart do not overlap, and bit b of copy b is the first of byte b.
    s.and_i(s.mul_i(four, s.splat_i(0x0020_4081)), s.splat_i(0x0101_0101))
}

/// The four quants of a word as floats, less the offset.
#[inline(always)]
fn quants<S: Simd>(s: S, codes: S::I, offset: S::I) -> [S::F; 4] {
    let low = s.splat_i(255);
    [
        s.to_f(s.sub_i(s.and_i(codes, low), offset)),
        s.to_f(s.sub_i(s.and_i(s.shr(codes, 8), low), offset)),
        s.to_f(s.sub_i(s.and_i(s.shr(codes, 16), low), offset)),
        s.to_f(s.sub_i(s.shr(codes, 24), offset)),
    ]
}

/// The decoded values of k = 4 t to 4 t + 3.
#[inline(always)]
fn values<S: Simd, Q: Quantized>(
    s: S,
    block: &Q::Block,
    t: usize,
    half: usize,
    (scale, minimum): (S::F, S::F),
) -> [S::F; 4] {
    // The product with a quant is exact, so fusing it with the minimum rounds as two steps would.
    let quants = Q::floats(s, block, t, half);
    array_of!(s.zero(); 4, |i| {
        if Q::MINIMUM { s.fma(quants[i], scale, minimum) } else { s.mul(quants[i], scale) }
    })
}

#[inline(always)]
fn accumulate_quantized<S: Simd, Q: Quantized, const H: usize, const P: usize>(
    s: S,
    panels: [&[Q::Block]; P],
    x: [&[f32]; H],
    acc: &mut Sums<S, H, P>,
) {
    let blocks = panels.first().map_or(0, |p| p.len());
    let panels = panels.map(|p| &p[..blocks]);
    let mut sums = *acc;
    for b in 0..blocks {
        let x: [&[f32]; H] = std::array::from_fn(|h| &x[h][b * Q::K..][..Q::K]);
        for g in 0..Q::K / Q::GROUP {
            let scales: [[(S::F, S::F); 2]; P] = array_of!([(s.zero(), s.zero()); 2]; P, |p| {
                [Q::scales(s, &panels[p][b], g, 0), Q::scales(s, &panels[p][b], g, 1)]
            });
            for t in g * (Q::GROUP / 4)..(g + 1) * (Q::GROUP / 4) {
                let w: [[[S::F; 4]; 2]; P] = array_of!([[s.zero(); 4]; 2]; P, |p| {
                    let block = &panels[p][b];
                    [values::<S, Q>(s, block, t, 0, scales[p][0]), values::<S, Q>(s, block, t, 1, scales[p][1])]
                });
                for i in 0..4 {
                    for h in 0..H {
                        let x = s.splat(x[h][4 * t + i]);
                        for p in 0..P {
                            sums[h][p][0] = s.fma(x, w[p][0][i], sums[h][p][0]);
                            sums[h][p][1] = s.fma(x, w[p][1][i], sums[h][p][1]);
                        }
                    }
                }
            }
        }
    }
    *acc = sums;
}

/// Implements [`Direct`] for formats that are [`Quantized`].
macro_rules! direct {
    ($($format:ty)*) => {$(
        impl Direct for $format {
            #[inline(always)]
            fn accumulate<S: Simd, const H: usize, const P: usize>(
                s: S,
                panels: [&[Self::Block]; P],
                x: [&[f32]; H],
                acc: &mut Sums<S, H, P>,
            ) {
                accumulate_quantized::<S, Self, H, P>(s, panels, x, acc);
            }
        }
    )*};
}
direct!(Q8_0 Q4_0 Q4_1 Q4K Q6K);

/// Half of a row of 32 as an array of 16.
#[inline(always)]
pub(crate) fn lanes<T>(row: &[T; PANEL], half: usize) -> &[T; LANES] {
    &row.as_chunks::<LANES>().0[half]
}

/// Half of a row of 32 as a mutable array of 16.
#[inline(always)]
pub(crate) fn lanes_mut<T>(row: &mut [T; PANEL], half: usize) -> &mut [T; LANES] {
    &mut row.as_chunks_mut::<LANES>().0[half]
}

/// The little-endian u16 at `at`.
#[inline(always)]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The little-endian u32 at `at`.
#[inline(always)]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Eight source bytes from `at`.
#[inline(always)]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |v, &b| v << 8 | u64::from(b))
}
