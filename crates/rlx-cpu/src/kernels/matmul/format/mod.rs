//! Layouts of packed weights, one file per kind of dtype.
//!
//! A panel holds [`PANEL`] columns (rows of `w[N, K]`) as a run of blocks of [`Format::K`] consecutive k. Within a block,
//! what belongs to one k and 32 columns lies together, so that a vector of 16 lanes is 16 columns. Quants of four
//! consecutive k of one column share a 32-bit word, which is what the integer dot product wants and what the f32
//! path takes apart with shifts. A packed panel has the size of its source rows (`q4_k`: 148 bytes for 144).

mod float;
mod four_bit;
mod q5;
mod q6_k;
mod q8_0;

pub use float::{Bf16, F16, F32};
pub use four_bit::{Q4_0, Q4_1, Q4K};
pub use q5::{Q5_0, Q5_1};
pub use q6_k::Q6K;
pub use q8_0::Q8_0;

use bytemuck::Pod;
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

    /// Decodes the blocks into rows of a panel, `K` rows for each block.
    fn decode<S: Simd>(s: S, blocks: &[Self::Block], out: &mut [PanelRow]);

    /// For H rows of x and the columns of P panels: `acc = fma(x[k], w[k], acc)` over all k in ascending order. The
    /// rows are as long as the panels are deep.
    fn accumulate<S: Simd, const H: usize, const P: usize>(
        s: S,
        panels: [&[Self::Block]; P],
        x: [&[f32]; H],
        acc: &mut Sums<S, H, P>,
    );
}

/// A block format whose quants and scales the integer path can use.
pub trait Quantized: Format {
    /// Elements of k that share a scale.
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
        let codes = Self::codes(s, block, t, half);
        let low = s.splat_i(255);
        let offset = s.splat_i(Self::OFFSET);
        let one = |code: S::I| s.to_f(if Self::OFFSET == 0 { code } else { s.sub_i(code, offset) });
        [
            one(s.and_i(codes, low)),
            one(s.and_i(s.shr(codes, 8), low)),
            one(s.and_i(s.shr(codes, 16), low)),
            one(s.shr(codes, 24)),
        ]
    }
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
fn decode_quantized<S: Simd, Q: Quantized>(s: S, blocks: &[Q::Block], out: &mut [PanelRow]) {
    for (block, out) in blocks.iter().zip(out.chunks_exact_mut(Q::K)) {
        for (g, out) in out.chunks_exact_mut(Q::GROUP).enumerate() {
            let scales = [Q::scales(s, block, g, 0), Q::scales(s, block, g, 1)];
            for (t, out) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                for half in 0..2 {
                    let w = values::<S, Q>(s, block, g * (Q::GROUP / 4) + t, half, scales[half]);
                    for i in 0..4 {
                        s.store(w[i], lanes_mut(&mut out[i], half));
                    }
                }
            }
        }
    }
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

/// Implements [`Format::decode`] and [`Format::accumulate`] through [`Quantized`].
macro_rules! through_quantized {
    () => {
        #[inline(always)]
        fn decode<S: Simd>(s: S, blocks: &[Self::Block], out: &mut [PanelRow]) {
            decode_quantized::<S, Self>(s, blocks, out);
        }

        #[inline(always)]
        fn accumulate<S: Simd, const H: usize, const P: usize>(
            s: S,
            panels: [&[Self::Block]; P],
            x: [&[f32]; H],
            acc: &mut Sums<S, H, P>,
        ) {
            accumulate_quantized::<S, Self, H, P>(s, panels, x, acc);
        }
    };
}
use through_quantized;

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

/// Eight source bytes from `at`.
#[inline(always)]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |v, &b| v << 8 | u64::from(b))
}
