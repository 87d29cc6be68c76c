//! AVX2 with FMA and F16C: two registers are one vector.

use std::arch::x86_64::*;

use super::{Kernel, LANES, Simd};

/// Proof that this machine has the instructions: made only by [`run`].
#[derive(Clone, Copy)]
pub struct Avx2(());

/// Whether this machine has all instructions that [`run`] compiles for.
pub fn detected() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2")
}

/// Runs a kernel. The caller has seen [`detected`].
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    #[target_feature(enable = "avx2,fma,f16c,bmi2")]
    fn go<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Avx2(()))
    }
    debug_assert!(detected());
    // SAFETY: a `SimdLevel` of this kind is made only where `detected` is true.
    unsafe { go(kernel) }
}

/// The last three steps of the fixed tree: lane i with i + 4, + 2, + 1.
#[inline]
#[target_feature(enable = "avx")]
fn sum8(v: __m256) -> f32 {
    let v = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    _mm_cvtss_f32(_mm_add_ss(v, _mm_movehdup_ps(v)))
}

/// The last three steps of the fixed tree with `max`, for lanes that are not NaN.
#[inline]
#[target_feature(enable = "avx")]
fn max8(v: __m256) -> f32 {
    let v = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)))
}

/// Four products of an unsigned and a signed byte per lane. Products are widened to 16 bits and added in 32: the
/// saturating byte instruction would lose exactness.
#[inline]
#[target_feature(enable = "avx2")]
fn dot4(u: __m256i, x: __m256i) -> __m256i {
    let low = _mm256_set1_epi16(0xff);
    let (u_even, u_odd) = (_mm256_and_si256(u, low), _mm256_srli_epi16::<8>(u));
    let x_even = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(x));
    let x_odd = _mm256_srai_epi16::<8>(x);
    _mm256_add_epi32(_mm256_madd_epi16(u_even, x_even), _mm256_madd_epi16(u_odd, x_odd))
}

#[inline]
#[target_feature(enable = "avx")]
fn transpose8(r: [__m256; 8]) -> [__m256; 8] {
    let mut t = r;
    for i in 0..4 {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    let mut s = t;
    for g in 0..2 {
        let [a, b, c, d] = [t[4 * g], t[4 * g + 1], t[4 * g + 2], t[4 * g + 3]];
        s[4 * g] = _mm256_shuffle_ps::<0x44>(a, c);
        s[4 * g + 1] = _mm256_shuffle_ps::<0xee>(a, c);
        s[4 * g + 2] = _mm256_shuffle_ps::<0x44>(b, d);
        s[4 * g + 3] = _mm256_shuffle_ps::<0xee>(b, d);
    }
    for j in 0..4 {
        t[j] = _mm256_permute2f128_ps::<0x20>(s[j], s[4 + j]);
        t[4 + j] = _mm256_permute2f128_ps::<0x31>(s[j], s[4 + j]);
    }
    t
}

#[inline]
#[target_feature(enable = "avx")]
fn transpose16(rows: &mut [[__m256; 2]; LANES]) {
    let old = *rows;
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let block = transpose8(std::array::from_fn(|r| old[8 * i + r][j]));
        for (r, v) in block.into_iter().enumerate() {
            rows[8 * j + r][i] = v;
        }
    }
}

// SAFETY of all blocks below: a value of Avx2 exists only inside `run`, on a machine that has the instructions;
// loads and stores go through references to arrays of exactly the bytes that are touched, unaligned forms throughout.
impl Simd for Avx2 {
    type F = [__m256; 2];
    type I = [__m256i; 2];
    type M = [__m256; 2];
    const TILE_ROWS: usize = 3;
    const DIRECT: bool = true;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_set1_ps(x); 2] }
    }
    #[inline(always)]
    fn load(self, x: &[f32; LANES]) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_loadu_ps(x.as_ptr()), _mm256_loadu_ps(x.as_ptr().add(8))] }
    }
    #[inline(always)]
    fn store(self, v: Self::F, out: &mut [f32; LANES]) {
        // SAFETY: see above.
        unsafe {
            {
                _mm256_storeu_ps(out.as_mut_ptr(), v[0]);
                _mm256_storeu_ps(out.as_mut_ptr().add(8), v[1]);
            }
        }
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_sqrt_ps(a[0]), _mm256_sqrt_ps(a[1])] }
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe {
            [
                _mm256_blendv_ps(_mm256_max_ps(a[0], b[0]), a[0], _mm256_cmp_ps::<_CMP_UNORD_Q>(a[0], a[0])),
                _mm256_blendv_ps(_mm256_max_ps(a[1], b[1]), a[1], _mm256_cmp_ps::<_CMP_UNORD_Q>(a[1], a[1])),
            ]
        }
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe {
            [
                _mm256_blendv_ps(_mm256_min_ps(a[0], b[0]), a[0], _mm256_cmp_ps::<_CMP_UNORD_Q>(a[0], a[0])),
                _mm256_blendv_ps(_mm256_min_ps(a[1], b[1]), a[1], _mm256_cmp_ps::<_CMP_UNORD_Q>(a[1], a[1])),
            ]
        }
    }
    #[inline(always)]
    fn clamp(self, x: Self::F, low: f32, high: f32) -> Self::F {
        // Where one operand is NaN, both give the second one.
        // SAFETY: see above.
        unsafe {
            let (low, high) = (_mm256_set1_ps(low), _mm256_set1_ps(high));
            x.map(|x| _mm256_max_ps(low, _mm256_min_ps(high, x)))
        }
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe {
            [
                _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a[0]),
                _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a[1]),
            ]
        }
    }
    #[inline(always)]
    fn floor(self, a: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_floor_ps(a[0]), _mm256_floor_ps(a[1])] }
    }
    #[inline(always)]
    fn ceil(self, a: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_ceil_ps(a[0]), _mm256_ceil_ps(a[1])] }
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        // SAFETY: see above.
        unsafe { [_mm256_cmp_ps::<_CMP_LT_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_LT_OQ>(a[1], b[1])] }
    }
    #[inline(always)]
    fn le(self, a: Self::F, b: Self::F) -> Self::M {
        // SAFETY: see above.
        unsafe { [_mm256_cmp_ps::<_CMP_LE_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_LE_OQ>(a[1], b[1])] }
    }
    #[inline(always)]
    fn eq(self, a: Self::F, b: Self::F) -> Self::M {
        // SAFETY: see above.
        unsafe { [_mm256_cmp_ps::<_CMP_EQ_OQ>(a[0], b[0]), _mm256_cmp_ps::<_CMP_EQ_OQ>(a[1], b[1])] }
    }
    #[inline(always)]
    fn is_nan(self, a: Self::F) -> Self::M {
        // SAFETY: see above.
        unsafe { [_mm256_cmp_ps::<_CMP_UNORD_Q>(a[0], a[0]), _mm256_cmp_ps::<_CMP_UNORD_Q>(a[1], a[1])] }
    }
    #[inline(always)]
    fn and_m(self, a: Self::M, b: Self::M) -> Self::M {
        // SAFETY: see above.
        unsafe { [_mm256_and_ps(a[0], b[0]), _mm256_and_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn or_m(self, a: Self::M, b: Self::M) -> Self::M {
        // SAFETY: see above.
        unsafe { [_mm256_or_ps(a[0], b[0]), _mm256_or_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn lanes(self, from: usize, to: usize) -> Self::M {
        // SAFETY: see above.
        unsafe {
            {
                let (f, t) = (_mm256_set1_epi32(from as i32), _mm256_set1_epi32(to as i32));
                let i = [
                    _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                    _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15),
                ];
                [
                    _mm256_castsi256_ps(_mm256_andnot_si256(
                        _mm256_cmpgt_epi32(f, i[0]),
                        _mm256_cmpgt_epi32(t, i[0]),
                    )),
                    _mm256_castsi256_ps(_mm256_andnot_si256(
                        _mm256_cmpgt_epi32(f, i[1]),
                        _mm256_cmpgt_epi32(t, i[1]),
                    )),
                ]
            }
        }
    }
    #[inline(always)]
    fn mask_bytes(self, x: &[u8; LANES]) -> Self::M {
        // SAFETY: see above.
        unsafe {
            {
                let x = self.load_u8(x);
                [
                    _mm256_castsi256_ps(_mm256_cmpgt_epi32(x[0], _mm256_setzero_si256())),
                    _mm256_castsi256_ps(_mm256_cmpgt_epi32(x[1], _mm256_setzero_si256())),
                ]
            }
        }
    }
    #[inline(always)]
    fn any(self, m: Self::M) -> bool {
        // SAFETY: see above.
        unsafe { _mm256_movemask_ps(m[0]) | _mm256_movemask_ps(m[1]) != 0 }
    }
    #[inline(always)]
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_blendv_ps(b[0], a[0], m[0]), _mm256_blendv_ps(b[1], a[1], m[1])] }
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_set1_epi32(x); 2] }
    }
    #[inline(always)]
    fn load_i(self, x: &[u32; LANES]) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_loadu_si256(x.as_ptr().cast()), _mm256_loadu_si256(x.as_ptr().add(8).cast())] }
    }
    #[inline(always)]
    fn store_i(self, v: Self::I, out: &mut [u32; LANES]) {
        // SAFETY: see above.
        unsafe {
            {
                _mm256_storeu_si256(out.as_mut_ptr().cast(), v[0]);
                _mm256_storeu_si256(out.as_mut_ptr().add(8).cast(), v[1]);
            }
        }
    }
    #[inline(always)]
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_add_epi32(a[0], b[0]), _mm256_add_epi32(a[1], b[1])] }
    }
    #[inline(always)]
    fn sub_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_sub_epi32(a[0], b[0]), _mm256_sub_epi32(a[1], b[1])] }
    }
    #[inline(always)]
    fn mul_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_mullo_epi32(a[0], b[0]), _mm256_mullo_epi32(a[1], b[1])] }
    }
    #[inline(always)]
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_and_si256(a[0], b[0]), _mm256_and_si256(a[1], b[1])] }
    }
    #[inline(always)]
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])] }
    }
    #[inline(always)]
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_xor_si256(a[0], b[0]), _mm256_xor_si256(a[1], b[1])] }
    }
    #[inline(always)]
    fn shl(self, a: Self::I, bits: u32) -> Self::I {
        // SAFETY: see above.
        unsafe {
            {
                let n = _mm256_set1_epi32(bits as i32);
                [_mm256_sllv_epi32(a[0], n), _mm256_sllv_epi32(a[1], n)]
            }
        }
    }
    #[inline(always)]
    fn shr(self, a: Self::I, bits: u32) -> Self::I {
        // SAFETY: see above.
        unsafe {
            {
                let n = _mm256_set1_epi32(bits as i32);
                [_mm256_srlv_epi32(a[0], n), _mm256_srlv_epi32(a[1], n)]
            }
        }
    }
    #[inline(always)]
    fn sra(self, a: Self::I, bits: u32) -> Self::I {
        // SAFETY: see above.
        unsafe {
            {
                let n = _mm256_set1_epi32(bits as i32);
                [_mm256_srav_epi32(a[0], n), _mm256_srav_epi32(a[1], n)]
            }
        }
    }
    #[inline(always)]
    fn to_f(self, a: Self::I) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_cvtepi32_ps(a[0]), _mm256_cvtepi32_ps(a[1])] }
    }
    #[inline(always)]
    fn round_i(self, a: Self::F) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_cvtps_epi32(a[0]), _mm256_cvtps_epi32(a[1])] }
    }
    #[inline(always)]
    fn bits_i(self, a: Self::F) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_castps_si256(a[0]), _mm256_castps_si256(a[1])] }
    }
    #[inline(always)]
    fn bits_f(self, a: Self::I) -> Self::F {
        // SAFETY: see above.
        unsafe { [_mm256_castsi256_ps(a[0]), _mm256_castsi256_ps(a[1])] }
    }
    #[inline(always)]
    fn nibble(self, a: Self::I) -> Self::F {
        // SAFETY: see above.
        unsafe {
            {
                let low = _mm256_set1_epi32(15);
                [
                    _mm256_cvtepi32_ps(_mm256_and_si256(a[0], low)),
                    _mm256_cvtepi32_ps(_mm256_and_si256(a[1], low)),
                ]
            }
        }
    }
    #[inline(always)]
    fn lookup_bytes(self, table: &[u8; 16], index: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe {
            let table = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            [_mm256_shuffle_epi8(table, index[0]), _mm256_shuffle_epi8(table, index[1])]
        }
    }
    #[inline(always)]
    fn gather<const N: usize>(self, table: &[u32; N], index: Self::I) -> Self::I {
        const { assert!(N.is_power_of_two() && N <= 1 << 30) };
        let index = self.and_i(index, self.splat_i(N as i32 - 1));
        // SAFETY: see above; the indices are from 0 to N - 1.
        unsafe {
            let table = table.as_ptr().cast();
            [_mm256_i32gather_epi32::<4>(table, index[0]), _mm256_i32gather_epi32::<4>(table, index[1])]
        }
    }
    #[inline(always)]
    fn dot4(self, acc: Self::I, u: Self::I, x: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { [_mm256_add_epi32(acc[0], dot4(u[0], x[0])), _mm256_add_epi32(acc[1], dot4(u[1], x[1]))] }
    }
    #[inline(always)]
    fn load_u8(self, x: &[u8; LANES]) -> Self::I {
        // SAFETY: see above.
        unsafe {
            [
                _mm256_cvtepu8_epi32(_mm_loadl_epi64(x.as_ptr().cast())),
                _mm256_cvtepu8_epi32(_mm_loadl_epi64(x.as_ptr().add(8).cast())),
            ]
        }
    }
    #[inline(always)]
    fn store_i8(self, v: Self::I, out: &mut [u8; LANES]) {
        // SAFETY: see above.
        unsafe {
            // Packing works within halves of a register: the quarters are put in order after it.
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(v[0], v[1]));
            let bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(out.as_mut_ptr().cast(), bytes);
        }
    }
    #[inline(always)]
    fn load_f16(self, x: &[u16; LANES]) -> Self::F {
        // SAFETY: see above.
        unsafe {
            [
                _mm256_cvtph_ps(_mm_loadu_si128(x.as_ptr().cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(x.as_ptr().add(8).cast())),
            ]
        }
    }
    #[inline(always)]
    fn store_f16(self, v: Self::F, out: &mut [u16; LANES]) {
        // SAFETY: see above.
        unsafe {
            {
                _mm_storeu_si128(out.as_mut_ptr().cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v[0]));
                _mm_storeu_si128(
                    out.as_mut_ptr().add(8).cast(),
                    _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v[1]),
                );
            }
        }
    }
    #[inline(always)]
    fn fold_max(self, v: Self::F) -> f32 {
        if self.any(self.is_nan(v)) {
            return f32::NAN;
        }
        // SAFETY: see above.
        unsafe { max8(_mm256_max_ps(v[0], v[1])) }
    }
    #[inline(always)]
    fn sum(self, v: Self::F) -> f32 {
        // SAFETY: see above.
        unsafe { sum8(_mm256_add_ps(v[0], v[1])) }
    }
    #[inline(always)]
    fn transpose(self, rows: &mut [Self::F; LANES]) {
        // SAFETY: see above.
        unsafe { transpose16(rows) }
    }
}
