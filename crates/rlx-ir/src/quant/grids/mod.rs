//! The grids of the IQ1, IQ2 and IQ3 formats: which combinations of values a group of elements can have.
//!
//! The constants are those of the GGUF format. Each grid's module holds its points twice: `CODES`, two bytes a point, for
//! devices that stage a grid where space is scarce, and `POINTS`, with the values themselves. A block stores an index into
//! these lists per group of 8 (IQ1, IQ2) or 4 (IQ3) elements.
//!
//! The points of IQ2 and IQ3 are magnitudes; their signs are stored beside the index, one bit per element (1 is minus), or
//! as 7 bits per 8 elements that [`SIGNS`] completes.
//!
//! ```
//! use rlx_ir::quant::grids::{SIGNS, iq2_xxs};
//! assert_eq!(iq2_xxs::POINTS[1].to_le_bytes(), [43, 8, 8, 8, 8, 8, 8, 8]);
//! assert_eq!(SIGNS[0b101_0001].count_ones() % 2, 0);
//! ```

pub mod iq1;
pub mod iq2_s;
pub mod iq2_xs;
pub mod iq2_xxs;
pub mod iq3_s;
pub mod iq3_xxs;

/// The signs of 8 elements by their 7 stored bits: bit 7 makes the number of minus signs even.
pub static SIGNS: [u8; 128] = {
    let mut signs = [0; 128];
    let mut i = 0;
    while i < signs.len() {
        signs[i] = i as u8 | ((i.count_ones() % 2) as u8) << 7;
        i += 1;
    }
    signs
};

/// Points of 8 elements from codes of 2 bits an element.
const fn expand_8<const N: usize>(codes: &[u16; N], levels: &[u8; 3]) -> [u64; N] {
    let mut points = [0; N];
    let mut i = 0;
    while i < 8 * N {
        let level = codes[i / 8] >> (2 * (i % 8)) & 3;
        points[i / 8] |= (levels[level as usize] as u64) << (8 * (i % 8));
        i += 1;
    }
    points
}

/// Points of 4 elements from codes of 4 bits an element.
const fn expand_4<const N: usize>(codes: &[u16; N], levels: &[u8; 8]) -> [u32; N] {
    let mut points = [0; N];
    let mut i = 0;
    while i < 4 * N {
        let level = codes[i / 4] >> (4 * (i % 4)) & 15;
        points[i / 4] |= (levels[level as usize] as u32) << (8 * (i % 4));
        i += 1;
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_even_and_keep_their_stored_bits() {
        for (i, signs) in SIGNS.iter().enumerate() {
            assert_eq!((signs.count_ones() % 2, usize::from(signs & 127)), (0, i));
        }
    }

    #[test]
    fn points_have_the_levels_of_their_codes() {
        fn check<const N: usize>(codes: &[u16], points: impl Iterator<Item = [u8; N]>, levels: &[u8]) {
            assert!(codes.is_sorted_by(|a, b| a < b), "no point is there twice");
            let mut count = 0;
            for (&code, point) in codes.iter().zip(points) {
                let bits = 16 / N;
                for (i, value) in point.into_iter().enumerate() {
                    assert_eq!(value, levels[usize::from(code) >> (bits * i) & ((1 << bits) - 1)]);
                }
                count += 1;
            }
            assert_eq!(count, codes.len());
        }
        check(&iq1::CODES, iq1::POINTS.iter().map(|p| p.to_le_bytes()), &iq1::LEVELS.map(|v| v as u8));
        check(&iq2_xxs::CODES, iq2_xxs::POINTS.iter().map(|p| p.to_le_bytes()), &iq2_xxs::LEVELS);
        check(&iq2_xs::CODES, iq2_xs::POINTS.iter().map(|p| p.to_le_bytes()), &iq2_xs::LEVELS);
        check(&iq2_s::CODES, iq2_s::POINTS.iter().map(|p| p.to_le_bytes()), &iq2_s::LEVELS);
        check(&iq3_xxs::CODES, iq3_xxs::POINTS.iter().map(|p| p.to_le_bytes()), &iq3_xxs::LEVELS);
        check(&iq3_s::CODES, iq3_s::POINTS.iter().map(|p| p.to_le_bytes()), &iq3_s::LEVELS);
    }
}
