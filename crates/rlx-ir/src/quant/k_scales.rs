//! The 8 scales and 8 minimums of 6 bits in 12 bytes that Q4_K and Q5_K share, and their search.
//!
//! Bytes 0..4 hold scales 0..4 and bytes 4..8 minimums 0..4 in their low 6 bits. Bytes 8..12 hold the low 4 bits of
//! scales 4..8 (low nibble) and minimums 4..8 (high nibble), whose upper 2 bits are the upper 2 bits of bytes 0..4 and
//! 4..8.

use super::bits;
use super::k_fit::Fit;

/// Bytes of the packed scales and minimums.
pub const BYTES: usize = 12;
/// Sub-blocks, each of 32 elements.
pub const SUB_BLOCKS: usize = 8;

/// The scale and the minimum (0 to 63) of sub-block `j` (below 8).
pub fn unpack(packed: &[u8], j: usize) -> (u8, u8) {
    if j < 4 {
        (packed[j] & 63, packed[j + 4] & 63)
    } else {
        let low = packed[j + 4];
        (low & 15 | packed[j - 4] >> 6 << 4, low >> 4 | packed[j] >> 6 << 4)
    }
}

fn pack(scales: &[u8; SUB_BLOCKS], minimums: &[u8; SUB_BLOCKS], out: &mut [u8]) {
    for j in 0..4 {
        out[j] = scales[j] | scales[j + 4] >> 4 << 6;
        out[j + 4] = minimums[j] | minimums[j + 4] >> 4 << 6;
        out[j + 8] = scales[j + 4] & 15 | (minimums[j + 4] & 15) << 4;
    }
}

/// Decodes `x = (d * scale) * q - dmin * minimum`, given the quant of each element.
pub(super) fn decode(
    block: &[u8],
    [d, dmin, scales]: [usize; 3],
    out: &mut [f32; 256],
    quant: impl Fn(usize) -> u8,
) {
    let (d, dmin) = (bits::get_f16(block, d), bits::get_f16(block, dmin));
    for (j, out) in out.chunks_exact_mut(32).enumerate() {
        let (scale, minimum) = unpack(&block[scales..], j);
        let (scale, minimum) = (d * f32::from(scale), dmin * f32::from(minimum));
        for (i, o) in out.iter_mut().enumerate() {
            *o = scale * f32::from(quant(32 * j + i)) - minimum;
        }
    }
}

/// Stores scales and minimums at the given offsets and returns the quants (0 to `high`) of all elements.
pub(super) fn encode(
    x: &[f32; 256],
    weights: &[f32; 256],
    high: i32,
    out: &mut [u8],
    [d, dmin, scales]: [usize; 3],
) -> [u8; 256] {
    let fit = Fit::<SUB_BLOCKS>::search(x, weights, high, 63);
    bits::put_f16(out, d, fit.d);
    bits::put_f16(out, dmin, fit.dmin);
    pack(&fit.scales, &fit.minimums, &mut out[scales..scales + BYTES]);
    fit.quants(x, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_scales_unpack_to_themselves() {
        let scales = [0, 1, 15, 16, 31, 32, 47, 63];
        let minimums = [63, 48, 33, 17, 14, 3, 62, 0];
        let mut packed = [0; BYTES];
        pack(&scales, &minimums, &mut packed);
        for j in 0..SUB_BLOCKS {
            assert_eq!(unpack(&packed, j), (scales[j], minimums[j]));
        }
    }
}
