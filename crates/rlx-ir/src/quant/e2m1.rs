//! The 4-bit floats of MXFP4 and NVFP4: a sign, two bits of exponent, one of mantissa.
//!
//! [`VALUES`] holds them doubled, so that all are integers; the formats' scales are halved to match.

/// What the 16 codes stand for, doubled. Code 8 is a second zero, which encoding does not use.
pub const VALUES: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];
/// The largest magnitude, doubled.
pub const LARGEST: f32 = 12.0;

/// Where the nearest magnitude changes.
const MIDDLES: [f32; 7] = [0.5, 1.5, 2.5, 3.5, 5.0, 7.0, 10.0];

/// The code nearest to `value` (doubled as [`VALUES`]); beyond the range the last.
pub(super) fn nearest(value: f32) -> u8 {
    let magnitude = MIDDLES.iter().map(|&middle| u8::from(value.abs() > middle)).sum();
    if magnitude > 0 && value < 0.0 { magnitude | 8 } else { magnitude }
}

/// The squared error of `x` with the best codes for the (halved) scale `d`; infinite where a product overflows.
pub(super) fn error(x: &[f32], d: f32) -> f64 {
    let inverse = super::search::inverse(d);
    x.iter().fold(0f64, |sum, &v| {
        let decoded = d * f32::from(VALUES[usize::from(nearest(v * inverse))]);
        let off = f64::from(decoded) - f64::from(v);
        sum + off * off
    })
}
