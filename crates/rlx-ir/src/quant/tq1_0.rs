//! TQ1_0: 256 ternary elements, five to a byte, one f16 scale.
//!
//! `x = d * (digit - 1)` with digits 0 to 2. A byte holds the digits as a fraction of 256 in base 3, rounded up, the
//! first digit leading: digit `n` is `(byte * 3^n mod 256) * 3 / 256`. Bytes 0 to 31 hold elements 0 to 159: digit `n` of
//! byte `i` is element `32 n + i`. Bytes 32 to 47 hold elements 160 to 239: digit `n` of the `i`th is element
//! `160 + 16 n + i`. The 4 bytes of the tail hold four digits each: digit `n` of the `i`th is element `240 + 4 n + i`.

use super::{bits, ternary};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 54;
/// Offset of the bytes of five digits: 48 bytes.
pub const QUANTS: usize = 0;
/// Offset of the bytes of four digits: 4 bytes.
pub const TAIL: usize = 48;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 52;

/// First byte, number of bytes and digits per byte of the three runs.
pub const RUNS: [(usize, usize, usize); 3] = [(QUANTS, 32, 5), (QUANTS + 32, 16, 5), (TAIL, 4, 4)];
/// The powers of 3 that bring each digit to the front.
pub const POWERS: [u8; 5] = [1, 3, 9, 27, 81];

/// Digit `n` (below 5) of a byte, 0 to 2.
pub fn digit(byte: u8, n: usize) -> u8 {
    ((u16::from(byte.wrapping_mul(POWERS[n])) * 3) >> 8) as u8
}

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    let mut out = out.iter_mut();
    for (start, count, digits) in RUNS {
        for n in 0..digits {
            for (&byte, o) in block[start..start + count].iter().zip(out.by_ref()) {
                *o = d * f32::from(digit(byte, n) as i8 - 1);
            }
        }
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], _weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    let d = bits::put_f16(out, SCALE, ternary::scale(x));
    let all = ternary::digits(x, d);
    let mut first = 0;
    for (start, count, digits) in RUNS {
        for i in 0..count {
            let number = (0..digits).fold(0, |sum, n| {
                sum + u16::from(all[first + count * n + i]) * u16::from(POWERS[4 - n])
            });
            out[start + i] = (number * 256).div_ceil(243) as u8;
        }
        first += count * digits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_five_digits_come_back() {
        for number in 0..243u16 {
            let byte = (number * 256).div_ceil(243) as u8;
            let back = (0..5).fold(0, |sum, n| 3 * sum + u16::from(digit(byte, n)));
            assert_eq!(back, number);
        }
    }
}
