//! Elementary functions of vectors, accurate to a few units in the last place of f32.
//!
//! Each lane depends on its own value only. NaN gives NaN; results overflow to infinity and underflow to zero through
//! the subnormal numbers as the exact function does. The polynomials interpolate the exact functions at Chebyshev
//! nodes; their relative errors are below 2e-8.

// Constants are written with the digits that were computed.
#![allow(clippy::excessive_precision)]

pub use super::pow::pow;
use super::{LANES, Simd};

#[inline(always)]
fn polynomial<S: Simd, const N: usize>(s: S, x: S::F, coefficients: [f32; N]) -> S::F {
    let mut sum = s.splat(coefficients[N - 1]);
    for i in (0..N - 1).rev() {
        sum = s.fma(sum, x, s.splat(coefficients[i]));
    }
    sum
}

/// Upper and lower part of ln 2; the product of the upper part with a small integer is exact.
const LN_2: [f32; 2] = [0.693_145_751_953_125, 1.428_606_820_309_417_2e-6];

/// `exp(x)`: within 2 units in the last place.
#[inline(always)]
pub fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    // Beyond these the result is 0 or infinite.
    let x = s.clamp(x, -105.0, 90.0);
    let n = s.round(s.mul(x, s.splat(std::f32::consts::LOG2_E)));
    let r = s.fma(n, s.splat(-LN_2[0]), x);
    let r = s.fma(n, s.splat(-LN_2[1]), r);
    // The series of exp: the first term that is left out is below 6e-9.
    let p = polynomial(s, r, [1.0, 1.0, 0.5, 1.0 / 6.0, 1.0 / 24.0, 1.0 / 120.0, 1.0 / 720.0, 1.0 / 5040.0]);
    s.scale(p, n)
}

/// `ln(x)`: within 2 units in the last place. Negative infinity for 0, NaN below.
#[inline(always)]
pub fn ln<S: Simd>(s: S, x: S::F) -> S::F {
    let tiny = s.lt(x, s.splat(f32::MIN_POSITIVE));
    let scaled = s.select(tiny, s.mul(x, s.splat(8_388_608.0)), x);
    let scale_exponent = s.select(tiny, s.splat(-23.0), s.zero());
    // x = 2^n m with m from sqrt(1/2) to sqrt(2).
    let bits = s.sub_i(s.bits_i(scaled), s.splat_i(0x3f35_04f3));
    let n = s.add(s.to_f(s.sra(bits, 23)), scale_exponent);
    let m = s.bits_f(s.add_i(s.and_i(bits, s.splat_i(0x007f_ffff)), s.splat_i(0x3f35_04f3)));
    // ln m = 2 artanh(f / (2 + f)) = f - f²/2 + t (f²/2 + t² R), with t = f / (2 + f).
    let f = s.sub(m, s.splat(1.0));
    let t = s.div(f, s.add(f, s.splat(2.0)));
    let z = s.mul(t, t);
    let r = s.mul(z, polynomial(s, z, [2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0, 2.0 / 11.0]));
    let half_square = s.mul(s.mul(f, f), s.splat(0.5));
    let low = s.fma(t, s.add(half_square, r), s.mul(n, s.splat(LN_2[1])));
    let y = s.fma(n, s.splat(LN_2[0]), s.sub(f, s.sub(half_square, low)));
    let y = s.select(s.eq(x, s.zero()), s.splat(f32::NEG_INFINITY), y);
    let y = s.select(s.lt(x, s.zero()), s.splat(f32::NAN), y);
    let y = s.select(s.eq(x, s.splat(f32::INFINITY)), x, y);
    s.select(s.is_nan(x), x, y)
}

/// `1 / (1 + exp(-x))`.
#[inline(always)]
pub fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    let e = exp(s, s.neg(s.abs(x)));
    let one = s.splat(1.0);
    let top = s.select(s.lt(x, s.zero()), e, one);
    s.div(top, s.add(one, e))
}

/// `x sigmoid(x)`; NaN for negative infinity, as the product says.
#[inline(always)]
pub fn silu<S: Simd>(s: S, x: S::F) -> S::F {
    let e = exp(s, s.neg(s.abs(x)));
    let one = s.splat(1.0);
    let top = s.select(s.lt(x, s.zero()), s.mul(x, e), x);
    s.div(top, s.add(one, e))
}

/// `tanh(x)`: within 3 units in the last place.
#[inline(always)]
pub fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let one = s.splat(1.0);
    let a = s.abs(x);
    let z = s.mul(x, x);
    let p = polynomial(
        s,
        z,
        [-3.333333308e-1, 1.333329075e-1, -5.395634940e-2, 2.174618709e-2, -8.272456733e-3, 2.214902743e-3],
    );
    let small = s.fma(s.mul(x, z), p, x);
    let e = exp(s, s.add(a, a));
    let large = s.sub(one, s.div(s.splat(2.0), s.add(e, one)));
    s.select(s.lt(a, s.splat(0.65)), small, copy_sign(s, large, x))
}

/// The magnitude of `a` with the sign of `x`.
#[inline(always)]
fn copy_sign<S: Simd>(s: S, a: S::F, x: S::F) -> S::F {
    let sign = s.and_i(s.bits_i(x), s.splat_i(i32::MIN));
    s.bits_f(s.or_i(s.bits_i(s.abs(a)), sign))
}

/// `erfc(z)` for `z = |x| / √(1/scale)`, from `exp(-scale x²)` with a square that keeps its rounding error.
#[inline(always)]
fn erfc_positive<S: Simd>(s: S, x: S::F, z: S::F, scale: f32) -> S::F {
    // Past 11 the result is 0, and infinity must not meet itself.
    let z = s.min(z, s.splat(11.0));
    let x = s.min(s.abs(x), s.splat(100.0));
    let square = s.mul(x, x);
    // The rounding error of the square, from the exact products of halves: without fused operations too.
    let high = s.bits_f(s.and_i(s.bits_i(x), s.splat_i(!0xfff)));
    let low = s.sub(x, high);
    let cross = s.mul(s.add(high, high), low);
    let error = s.add(s.add(s.sub(s.mul(high, high), square), cross), s.mul(low, low));
    let e = exp(s, s.mul(square, s.splat(-scale)));
    let e = s.fma(s.mul(e, error), s.splat(-scale), e);
    let two = s.splat(2.0);
    let t = s.div(s.sub(z, two), s.add(z, two));
    // (1 + 2 z) exp(z²) erfc(z) as a polynomial of (z - 2) / (z + 2).
    let p = polynomial(
        s,
        t,
        [
            1.276978394,
            -9.276390279e-2,
            -1.660315260e-1,
            1.640531044e-1,
            -5.420320748e-2,
            -8.042481414e-3,
            8.631818071e-3,
            1.262663412e-3,
            -1.249076639e-3,
            -3.500619706e-4,
            3.292978825e-5,
        ],
    );
    s.mul(e, s.div(p, s.fma(two, z, s.splat(1.0))))
}

/// The error function: within 3 units in the last place.
#[inline(always)]
pub fn erf<S: Simd>(s: S, x: S::F) -> S::F {
    let a = s.abs(x);
    let z = s.mul(x, x);
    let p = polynomial(
        s,
        z,
        [
            1.128379166,
            -3.761262667e-1,
            1.128359472e-1,
            -2.685421201e-2,
            5.189087423e-3,
            -8.016864287e-4,
            7.875875063e-5,
        ],
    );
    let large = s.sub(s.splat(1.0), erfc_positive(s, x, a, 1.0));
    s.select(s.lt(a, s.splat(1.0)), s.mul(x, p), copy_sign(s, large, x))
}

/// `x Φ(x)`, Φ the normal distribution function: within 16 units in the last place, in the tail too.
#[inline(always)]
pub fn gelu<S: Simd>(s: S, x: S::F) -> S::F {
    let z = s.mul(s.abs(x), s.splat(std::f32::consts::FRAC_1_SQRT_2));
    let tail = s.mul(erfc_positive(s, x, z, 0.5), s.splat(0.5));
    s.mul(x, s.select(s.lt(x, s.zero()), tail, s.sub(s.splat(1.0), tail)))
}

/// `x (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2`, computed as `x sigmoid(2 √(2/π) (x + 0.044715 x³))`.
#[inline(always)]
pub fn gelu_tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let cubic = s.fma(s.mul(x, x), s.splat(0.044_715), s.splat(1.0));
    let inner = s.mul(s.mul(x, s.splat(1.595_769_121_605_731)), cubic);
    let gate = sigmoid(s, inner);
    s.mul(x, gate)
}

/// `1 / √x`.
#[inline(always)]
pub fn rsqrt<S: Simd>(s: S, x: S::F) -> S::F {
    s.div(s.splat(1.0), s.sqrt(x))
}

/// Largest magnitude whose multiple of π/2 is subtracted exactly enough in vectors.
const REDUCIBLE: f32 = 8192.0;

/// Sine and cosine: within 2 units in the last place of results above 1e-3, absolutely within 1e-7 elsewhere.
#[inline(always)]
pub fn sin_cos<S: Simd>(s: S, x: S::F) -> (S::F, S::F) {
    let (sin, cos) = sin_cos_reducible(s, x);
    let small = s.lt(s.abs(x), s.splat(REDUCIBLE));
    let large = s.le(s.splat(REDUCIBLE), s.abs(x));
    if !s.any(large) {
        return (sin, cos);
    }
    let mut values = [0.0; LANES];
    let mut exact = [[0.0; LANES]; 2];
    s.store(x, &mut values);
    for i in 0..LANES {
        let (sin, cos) = f64::from(values[i]).sin_cos();
        (exact[0][i], exact[1][i]) = (sin as f32, cos as f32);
    }
    (s.select(small, sin, s.load(&exact[0])), s.select(small, cos, s.load(&exact[1])))
}

#[inline(always)]
fn sin_cos_reducible<S: Simd>(s: S, x: S::F) -> (S::F, S::F) {
    let n = s.round(s.mul(x, s.splat(std::f32::consts::FRAC_2_PI)));
    let mut r = x;
    // π/2 in parts of at most 11 bits but the last: their products with n (13 bits) are exact without fusing too.
    for part in [1.570_312_5, 4.837_512_969_970_703e-4, 7.549_533_620_476_723e-8, 2.563_344_068_257_09e-12] {
        r = s.fma(n, s.splat(-part), r);
    }
    let z = s.mul(r, r);
    let p = polynomial(s, z, [-1.666666666e-1, 8.333331831e-3, -1.984006304e-4, 2.724686872e-6]);
    let sin = s.fma(s.mul(z, r), p, r);
    let p = polynomial(s, z, [4.166666666e-2, -1.388888764e-3, 2.480058060e-5, -2.729840765e-7]);
    let cos = s.fma(s.mul(z, z), p, s.fma(z, s.splat(-0.5), s.splat(1.0)));
    // Quadrants: 1 and 3 exchange the two; the signs follow bit 1 of n and of n + 1.
    let n = s.round_i(n);
    let one = s.splat_i(1);
    let odd = s.lt(s.splat(0.5), s.to_f(s.and_i(n, one)));
    let (sin, cos) = (s.select(odd, cos, sin), s.select(odd, sin, cos));
    (flip_by_quadrant(s, sin, n), flip_by_quadrant(s, cos, s.add_i(n, one)))
}

/// Negative where bit 1 of n is set.
#[inline(always)]
fn flip_by_quadrant<S: Simd>(s: S, v: S::F, n: S::I) -> S::F {
    s.bits_f(s.xor_i(s.bits_i(v), s.shl(s.and_i(n, s.splat_i(2)), 30)))
}
