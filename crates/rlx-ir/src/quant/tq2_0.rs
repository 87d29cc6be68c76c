//! TQ2_0: 256 ternary elements of 2 bits, one f16 scale.
//!
//! `x = d * (q - 1)`; encoding uses the quants 0 to 2. Each half of 128 elements has 32 bytes: element `32 r + i` of the
//! half lies in bits `2 r` and `2 r + 1` of byte `i`.

use super::{bits, ternary};

/// Elements per block.
pub const ELEMS: usize = 256;
/// Bytes per block.
pub const BYTES: usize = 66;
/// Offset of the quants: 64 bytes.
pub const QUANTS: usize = 0;
/// Offset of the scale `d`: f16.
pub const SCALE: usize = 64;

/// Byte and shift of element `i`.
fn place(i: usize) -> (usize, usize) {
    (QUANTS + i / 128 * 32 + i % 32, i % 128 / 32 * 2)
}

/// Decodes one block.
pub fn decode_block(block: &[u8; BYTES], out: &mut [f32; ELEMS]) {
    let d = bits::get_f16(block, SCALE);
    for (i, o) in out.iter_mut().enumerate() {
        let (at, shift) = place(i);
        *o = d * f32::from((block[at] >> shift & 3) as i8 - 1);
    }
}

pub(super) fn encode_block(x: &[f32; ELEMS], _weights: &[f32; ELEMS], out: &mut [u8; BYTES]) {
    out.fill(0);
    let d = bits::put_f16(out, SCALE, ternary::scale(x));
    for (i, digit) in ternary::digits(x, d).into_iter().enumerate() {
        let (at, shift) = place(i);
        out[at] |= digit << shift;
    }
}
