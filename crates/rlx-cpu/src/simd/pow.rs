//! Powers of f32, by way of f64.

use super::{LANES, Simd};

/// `a` to the power of `b`: within 0.51 units in the last place, with the special values of C99.
#[inline(always)]
pub fn pow<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
    let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
    s.store(a, &mut x);
    s.store(b, &mut y);
    // Each lane takes the same path, so that the compiler makes vectors of f64 of it.
    for (x, y) in x.iter_mut().zip(y) {
        *x = power(*x, y);
    }
    s.load(&x)
}

/// Added to a number below 2^51 it leaves the nearest integer in the low bits.
const TO_INTEGER: f64 = 6_755_399_441_055_744.0;

/// The bits of sqrt(1/2), with 0 in the low half: where exponents are cut.
const ROOT_HALF: u64 = 0x3fe6_a09e_0000_0000;

const MANTISSA: u64 = (1 << 52) - 1;

#[inline(always)]
fn power(a: f32, b: f32) -> f32 {
    let (x, y) = (f64::from(a), f64::from(b));
    let product = y * log2(x.abs());
    // Beyond these f32 has only 0 and infinity; NaN goes through both comparisons.
    let product = if product > 1000.0 { 1000.0 } else { product };
    let product = if product < -1000.0 { -1000.0 } else { product };
    let magnitude = exp2(product);
    // Every f32 from 2^24 on is an even integer.
    let clamped = if y > 1e9 { 1e9 } else { y };
    let clamped = if clamped < -1e9 { -1e9 } else { clamped };
    let shifted = clamped + TO_INTEGER;
    let (integer, odd) = (shifted - TO_INTEGER == clamped, shifted.to_bits() & 1 == 1);
    // An infinity has no root, but an infinite or empty magnitude.
    let finite = x.abs() < f64::INFINITY;
    let result = if x < 0.0 && finite && !integer { f64::NAN } else { magnitude };
    let result = if x.is_sign_negative() && integer && odd { -result } else { result };
    // Even of NaN; and an infinite power of -1 is that of 1.
    let one = y == 0.0 || x == 1.0 || (x == -1.0 && y.abs() == f64::INFINITY);
    if one { 1.0 } else { result as f32 }
}

/// Of numbers of f32 that are not negative, with a relative error below 2^-38.
#[inline(always)]
fn log2(x: f64) -> f64 {
    // x = 2^n m with m from sqrt(1/2) to sqrt(2): the range of f32 is within the normal numbers of f64.
    let bits = x.to_bits().wrapping_sub(ROOT_HALF);
    let m = f64::from_bits((bits & MANTISSA).wrapping_add(ROOT_HALF));
    // The exponent, from -149 to 127, by way of the mantissa of a number: there are vectors for that on every machine.
    let n = f64::from_bits(((bits >> 52).wrapping_add(2048) & 0xfff) | TO_INTEGER.to_bits());
    let n = n - (TO_INTEGER + 2048.0);
    // ln m = 2 artanh(t), with t = (m - 1) / (m + 1).
    let t = (m - 1.0) / (m + 1.0);
    let z = t * t;
    let series = [1.0, 1.0 / 3.0, 1.0 / 5.0, 1.0 / 7.0, 1.0 / 9.0, 1.0 / 11.0, 1.0 / 13.0, 1.0 / 15.0];
    let value = n + t * (2.0 * std::f64::consts::LOG2_E) * polynomial(z, series);
    let value = if x == 0.0 { f64::NEG_INFINITY } else { value };
    // Infinity and NaN.
    if x < f64::INFINITY { value } else { x }
}

/// Of numbers between -1000 and 1000, with a relative error below 2^-38; NaN of NaN.
#[inline(always)]
fn exp2(x: f64) -> f64 {
    let shifted = x + TO_INTEGER;
    let r = (x - (shifted - TO_INTEGER)) * std::f64::consts::LN_2;
    // The series of exp: the first term that is left out is below 3e-13.
    let series = [
        1.0,
        1.0,
        1.0 / 2.0,
        1.0 / 6.0,
        1.0 / 24.0,
        1.0 / 120.0,
        1.0 / 720.0,
        1.0 / 5040.0,
        1.0 / 40320.0,
        1.0 / 362_880.0,
        1.0 / 3_628_800.0,
    ];
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    polynomial(r, series) * scale
}

#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = coefficients[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum * x + coefficients[i];
    }
    sum
}
