//! AVX-512 with BW, VL, DQ and VNNI: one register is one vector.

use std::arch::x86_64::*;

use super::{Kernel, LANES, Simd};

/// Proof that this machine has the instructions: made only by [`run`].
#[derive(Clone, Copy)]
pub struct Avx512(());

/// Whether this machine has all instructions that [`run`] compiles for.
pub fn detected() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vnni")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2")
}

/// Runs a kernel. The caller has seen [`detected`].
pub fn run<K: Kernel>(kernel: K) -> K::Output {
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c,bmi2")]
    fn go<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Avx512(()))
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

#[inline]
#[target_feature(enable = "avx512f")]
fn transpose16(r: &mut [__m512; LANES]) {
    let mut t = *r;
    for i in 0..8 {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    // Now groups of four rows: quarter q of `r[4 g + j]` is column 4 q + j of rows 4 g to 4 g + 3.
    for g in 0..4 {
        let [a, b, c, d] = [t[4 * g], t[4 * g + 1], t[4 * g + 2], t[4 * g + 3]];
        r[4 * g] = _mm512_shuffle_ps::<0x44>(a, c);
        r[4 * g + 1] = _mm512_shuffle_ps::<0xee>(a, c);
        r[4 * g + 2] = _mm512_shuffle_ps::<0x44>(b, d);
        r[4 * g + 3] = _mm512_shuffle_ps::<0xee>(b, d);
    }
    for j in 0..4 {
        let (a, b) = (r[j], r[4 + j]);
        let (c, d) = (r[8 + j], r[12 + j]);
        let (ab_even, ab_odd) = (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
        let (cd_even, cd_odd) = (_mm512_shuffle_f32x4::<0x88>(c, d), _mm512_shuffle_f32x4::<0xdd>(c, d));
        t[j] = _mm512_shuffle_f32x4::<0x88>(ab_even, cd_even);
        t[8 + j] = _mm512_shuffle_f32x4::<0xdd>(ab_even, cd_even);
        t[4 + j] = _mm512_shuffle_f32x4::<0x88>(ab_odd, cd_odd);
        t[12 + j] = _mm512_shuffle_f32x4::<0xdd>(ab_odd, cd_odd);
    }
    *r = t;
}

// SAFETY of all blocks below: a value of Avx512 exists only inside `run`, on a machine that has the instructions;
// loads and stores go through references to arrays of exactly the bytes that are touched, unaligned forms throughout.
impl Simd for Avx512 {
    type F = __m512;
    type I = __m512i;
    type M = __mmask16;
    const TILE_ROWS: usize = 12;
    const DIRECT: bool = true;

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    fn load(self, x: &[f32; LANES]) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(x.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, v: Self::F, out: &mut [f32; LANES]) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), v) }
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_sqrt_ps(a) }
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_mask_mov_ps(_mm512_max_ps(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a) }
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_mask_mov_ps(_mm512_min_ps(a, b), _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a), a) }
    }
    #[inline(always)]
    fn clamp(self, x: Self::F, low: f32, high: f32) -> Self::F {
        // Where one operand is NaN, both give the second one.
        // SAFETY: see above.
        unsafe { _mm512_max_ps(_mm512_set1_ps(low), _mm512_min_ps(_mm512_set1_ps(high), x)) }
    }
    #[inline(always)]
    fn scale(self, x: Self::F, n: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_scalef_ps(x, n) }
    }
    #[inline(always)]
    fn round(self, a: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn floor(self, a: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn ceil(self, a: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn lt(self, a: Self::F, b: Self::F) -> Self::M {
        // SAFETY: see above.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b) }
    }
    #[inline(always)]
    fn le(self, a: Self::F, b: Self::F) -> Self::M {
        // SAFETY: see above.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b) }
    }
    #[inline(always)]
    fn eq(self, a: Self::F, b: Self::F) -> Self::M {
        // SAFETY: see above.
        unsafe { _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b) }
    }
    #[inline(always)]
    fn is_nan(self, a: Self::F) -> Self::M {
        // SAFETY: see above.
        unsafe { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a) }
    }
    #[inline(always)]
    fn and_m(self, a: Self::M, b: Self::M) -> Self::M {
        // SAFETY: see above.
        unsafe { _kand_mask16(a, b) }
    }
    #[inline(always)]
    fn or_m(self, a: Self::M, b: Self::M) -> Self::M {
        // SAFETY: see above.
        unsafe { _kor_mask16(a, b) }
    }
    #[inline(always)]
    fn mask_bytes(self, x: &[u8; LANES]) -> Self::M {
        // SAFETY: see above.
        unsafe {
            {
                let x = _mm512_cvtepu8_epi32(_mm_loadu_si128(x.as_ptr().cast()));
                _mm512_test_epi32_mask(x, x)
            }
        }
    }
    #[inline(always)]
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_mask_mov_ps(b, m, a) }
    }
    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi32(x) }
    }
    #[inline(always)]
    fn load_i(self, x: &[u32; LANES]) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(x.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_i(self, v: Self::I, out: &mut [u32; LANES]) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), v) }
    }
    #[inline(always)]
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_add_epi32(a, b) }
    }
    #[inline(always)]
    fn sub_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_sub_epi32(a, b) }
    }
    #[inline(always)]
    fn mul_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_mullo_epi32(a, b) }
    }
    #[inline(always)]
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_xor_si512(a, b) }
    }
    #[inline(always)]
    fn shl(self, a: Self::I, bits: u32) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_sllv_epi32(a, _mm512_set1_epi32(bits as i32)) }
    }
    #[inline(always)]
    fn shr(self, a: Self::I, bits: u32) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_srlv_epi32(a, _mm512_set1_epi32(bits as i32)) }
    }
    #[inline(always)]
    fn sra(self, a: Self::I, bits: u32) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_srav_epi32(a, _mm512_set1_epi32(bits as i32)) }
    }
    #[inline(always)]
    fn to_f(self, a: Self::I) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_cvtepi32_ps(a) }
    }
    #[inline(always)]
    fn round_i(self, a: Self::F) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_cvtps_epi32(a) }
    }
    #[inline(always)]
    fn bits_i(self, a: Self::F) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_castps_si512(a) }
    }
    #[inline(always)]
    fn bits_f(self, a: Self::I) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_castsi512_ps(a) }
    }
    #[inline(always)]
    fn nibble(self, a: Self::I) -> Self::F {
        // SAFETY: see above.
        unsafe {
            _mm512_permutexvar_ps(
                a,
                _mm512_setr_ps(
                    0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0,
                ),
            )
        }
    }
    #[inline(always)]
    fn lookup_bytes(self, table: &[u8; 16], index: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe {
            let table = _mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast()));
            _mm512_shuffle_epi8(table, index)
        }
    }
    #[inline(always)]
    fn gather<const N: usize>(self, table: &[u32; N], index: Self::I) -> Self::I {
        const { assert!(N.is_power_of_two() && N <= 1 << 30) };
        let index = self.and_i(index, self.splat_i(N as i32 - 1));
        // SAFETY: see above; the indices are from 0 to N - 1.
        unsafe { _mm512_i32gather_epi32::<4>(index, table.as_ptr().cast()) }
    }
    #[inline(always)]
    fn dot4(self, acc: Self::I, u: Self::I, x: Self::I) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_dpbusd_epi32(acc, u, x) }
    }
    #[inline(always)]
    fn load_u8(self, x: &[u8; LANES]) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(x.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_i8(self, x: &[u8; LANES]) -> Self::I {
        // SAFETY: see above.
        unsafe { _mm512_cvtepi8_epi32(_mm_loadu_si128(x.as_ptr().cast())) }
    }
    #[inline(always)]
    fn store_i8(self, v: Self::I, out: &mut [u8; LANES]) {
        // SAFETY: see above.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(v)) }
    }
    #[inline(always)]
    fn load_f16(self, x: &[u16; LANES]) -> Self::F {
        // SAFETY: see above.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(x.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_bf16(self, x: &[u16; LANES]) -> Self::F {
        // SAFETY: see above.
        unsafe {
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(_mm256_loadu_si256(
                x.as_ptr().cast(),
            ))))
        }
    }
    #[inline(always)]
    fn store_f16(self, v: Self::F, out: &mut [u16; LANES]) {
        // SAFETY: see above.
        unsafe {
            _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT }>(v));
        }
    }
    #[inline(always)]
    fn fold_max(self, v: Self::F) -> f32 {
        if self.any(self.is_nan(v)) {
            return f32::NAN;
        }
        // SAFETY: see above.
        unsafe { max8(_mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v))) }
    }
    #[inline(always)]
    fn sum(self, v: Self::F) -> f32 {
        // SAFETY: see above.
        unsafe { sum8(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v))) }
    }
    #[inline(always)]
    fn transpose(self, rows: &mut [Self::F; LANES]) {
        // SAFETY: see above.
        unsafe { transpose16(rows) }
    }
    #[inline(always)]
    fn lanes(self, from: usize, to: usize) -> Self::M {
        let below = |n: usize| if n < LANES { (1u32 << n) - 1 } else { 0xffff };
        (below(to) & !below(from)) as u16
    }
    #[inline(always)]
    fn any(self, m: Self::M) -> bool {
        m != 0
    }
}
