//! What the formats with grids share: a quant word is a point, or half of one, of a grid, with signs.

use super::spread_bits;
use crate::simd::Simd;

/// What makes a signed value an unsigned byte.
pub(super) const OFFSET: i32 = 128;

/// Magnitudes (below 128, one a byte) with signs: bit b of `minus` (0 to 15) is that of byte b.
#[inline(always)]
pub(super) fn signed<S: Simd>(s: S, magnitudes: S::I, minus: S::I) -> S::I {
    let ones = spread_bits(s, minus);
    let negative = s.sub_i(s.shl(ones, 8), ones);
    // 128 + m, or its complement 127 - m and one more.
    s.add_i(s.xor_i(s.or_i(magnitudes, s.splat_i(0x8080_8080_u32 as i32)), negative), ones)
}

/// The signs of the first (`half` 0) or last four of eight elements from seven bits, which an eighth makes even.
#[inline(always)]
pub(super) fn even_signs<S: Simd>(s: S, seven: S::I, half: usize) -> S::I {
    if half == 0 {
        return s.and_i(seven, s.splat_i(15));
    }
    let mut parity = s.xor_i(seven, s.shr(seven, 4));
    parity = s.xor_i(parity, s.shr(parity, 2));
    parity = s.xor_i(parity, s.shr(parity, 1));
    s.or_i(s.shr(seven, 4), s.shl(s.and_i(parity, s.splat_i(1)), 3))
}

/// Zero-extended 16-bit integers.
#[inline(always)]
pub(super) fn load_u16<S: Simd>(s: S, x: &[u16; crate::simd::LANES]) -> S::I {
    s.shr(s.bits_i(s.load_bf16(x)), 16)
}

/// `d * (0.5 + step) * factor`.
#[inline(always)]
pub(super) fn half_step<S: Simd>(s: S, d: S::F, step: S::I, factor: f32) -> S::F {
    s.mul(s.mul(d, s.add(s.splat(0.5), s.to_f(step))), s.splat(factor))
}

/// `d * (1 + 2 * step)`.
#[inline(always)]
pub(super) fn odd_step<S: Simd>(s: S, d: S::F, step: S::I) -> S::F {
    s.mul(d, s.to_f(s.add_i(s.add_i(step, step), s.splat_i(1))))
}
