//! Plain Rust over arrays: the fallback of x86-64, and NEON by auto-vectorisation on aarch64.

use half::f16;

use super::{LANES, Simd};

/// Whether `fma` rounds once: where the target has the instruction at compile time.
pub const FUSES: bool = cfg!(any(target_arch = "aarch64", target_feature = "fma"));

#[derive(Clone, Copy)]
pub struct Portable;

type F = [f32; LANES];
type I = [u32; LANES];
type M = [bool; LANES];

#[inline(always)]
fn map<A: Copy, B>(a: [A; LANES], f: impl Fn(A) -> B) -> [B; LANES] {
    std::array::from_fn(|i| f(a[i]))
}

#[inline(always)]
fn zip<A: Copy, B: Copy, C>(a: [A; LANES], b: [B; LANES], f: impl Fn(A, B) -> C) -> [C; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Portable {
    type F = F;
    type I = I;
    type M = M;
    const TILE_ROWS: usize = 2;
    const DIRECT: bool = false;

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        [x; LANES]
    }
    #[inline(always)]
    fn load(self, x: &F) -> F {
        *x
    }
    #[inline(always)]
    fn store(self, v: F, out: &mut F) {
        *out = v;
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn sqrt(self, a: F) -> F {
        map(a, f32::sqrt)
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        std::array::from_fn(|i| if FUSES { a[i].mul_add(b[i], c[i]) } else { a[i] * b[i] + c[i] })
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        zip(a, b, |a, b| if a > b || a.is_nan() { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        zip(a, b, |a, b| if a < b || a.is_nan() { a } else { b })
    }
    #[inline(always)]
    fn round(self, a: F) -> F {
        map(a, f32::round_ties_even)
    }
    #[inline(always)]
    fn floor(self, a: F) -> F {
        map(a, f32::floor)
    }
    #[inline(always)]
    fn ceil(self, a: F) -> F {
        map(a, f32::ceil)
    }
    #[inline(always)]
    fn lt(self, a: F, b: F) -> M {
        zip(a, b, |a, b| a < b)
    }
    #[inline(always)]
    fn le(self, a: F, b: F) -> M {
        zip(a, b, |a, b| a <= b)
    }
    #[inline(always)]
    fn eq(self, a: F, b: F) -> M {
        zip(a, b, |a, b| a == b)
    }
    #[inline(always)]
    fn is_nan(self, a: F) -> M {
        map(a, f32::is_nan)
    }
    #[inline(always)]
    fn and_m(self, a: M, b: M) -> M {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn or_m(self, a: M, b: M) -> M {
        zip(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn lanes(self, from: usize, to: usize) -> M {
        std::array::from_fn(|i| from <= i && i < to)
    }
    #[inline(always)]
    fn mask_bytes(self, x: &[u8; LANES]) -> M {
        map(*x, |x| x != 0)
    }
    #[inline(always)]
    fn any(self, m: M) -> bool {
        m.contains(&true)
    }
    #[inline(always)]
    fn select(self, m: M, a: F, b: F) -> F {
        std::array::from_fn(|i| if m[i] { a[i] } else { b[i] })
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> I {
        [x as u32; LANES]
    }
    #[inline(always)]
    fn load_i(self, x: &I) -> I {
        *x
    }
    #[inline(always)]
    fn store_i(self, v: I, out: &mut I) {
        *out = v;
    }
    #[inline(always)]
    fn add_i(self, a: I, b: I) -> I {
        zip(a, b, u32::wrapping_add)
    }
    #[inline(always)]
    fn sub_i(self, a: I, b: I) -> I {
        zip(a, b, u32::wrapping_sub)
    }
    #[inline(always)]
    fn mul_i(self, a: I, b: I) -> I {
        zip(a, b, u32::wrapping_mul)
    }
    #[inline(always)]
    fn and_i(self, a: I, b: I) -> I {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn or_i(self, a: I, b: I) -> I {
        zip(a, b, |a, b| a | b)
    }
    #[inline(always)]
    fn xor_i(self, a: I, b: I) -> I {
        zip(a, b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn shl(self, a: I, bits: u32) -> I {
        map(a, |a| a << bits)
    }
    #[inline(always)]
    fn shr(self, a: I, bits: u32) -> I {
        map(a, |a| a >> bits)
    }
    #[inline(always)]
    fn sra(self, a: I, bits: u32) -> I {
        map(a, |a| (a as i32 >> bits) as u32)
    }
    #[inline(always)]
    fn to_f(self, a: I) -> F {
        map(a, |a| a as i32 as f32)
    }
    #[inline(always)]
    fn round_i(self, a: F) -> I {
        map(a, |a| a.round_ties_even() as i32 as u32)
    }
    #[inline(always)]
    fn bits_i(self, a: F) -> I {
        map(a, f32::to_bits)
    }
    #[inline(always)]
    fn bits_f(self, a: I) -> F {
        map(a, f32::from_bits)
    }
    #[inline(always)]
    fn nibble(self, a: I) -> F {
        map(a, |a| (a & 15) as i32 as f32)
    }
    #[inline(always)]
    fn lookup_bytes(self, table: &[u8; 16], index: I) -> I {
        map(index, |word| u32::from_le_bytes(word.to_le_bytes().map(|b| table[usize::from(b & 15)])))
    }
    #[inline(always)]
    fn gather<const N: usize>(self, table: &[u32; N], index: I) -> I {
        const { assert!(N.is_power_of_two()) };
        map(index, |i| table[i as usize & (N - 1)])
    }
    #[inline(always)]
    fn dot4(self, acc: I, u: I, x: I) -> I {
        std::array::from_fn(|i| {
            let (u, x) = (u[i].to_le_bytes(), x[i].to_le_bytes());
            let mut sum = acc[i] as i32;
            for (u, x) in u.into_iter().zip(x) {
                sum = sum.wrapping_add(i32::from(u) * i32::from(x as i8));
            }
            sum as u32
        })
    }
    #[inline(always)]
    fn load_u8(self, x: &[u8; LANES]) -> I {
        map(*x, u32::from)
    }
    #[inline(always)]
    fn store_i8(self, v: I, out: &mut [u8; LANES]) {
        *out = map(v, |v| v as u8);
    }
    #[inline(always)]
    fn load_f16(self, x: &[u16; LANES]) -> F {
        map(*x, |x| f16::from_bits(x).to_f32())
    }
    #[inline(always)]
    fn store_f16(self, v: F, out: &mut [u16; LANES]) {
        *out = map(v, |x| f16::from_f32(x).to_bits());
    }
    #[inline(always)]
    fn sum(self, v: F) -> f32 {
        self.fold(v, |a, b| a + b)
    }
    #[inline(always)]
    fn transpose(self, rows: &mut [F; LANES]) {
        let old = *rows;
        for (i, row) in rows.iter_mut().enumerate() {
            for (j, x) in row.iter_mut().enumerate() {
                *x = old[j][i];
            }
        }
    }
}
