//! Fields of a block: f16 and f32 at a byte offset, and nibbles.

use half::f16;

/// The f16 at byte `at`, as f32.
pub(super) fn get_f16(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Stores `value` as f16 at byte `at` and returns what is stored.
pub(super) fn put_f16(block: &mut [u8], at: usize, value: f32) -> f32 {
    let stored = f16::from_f32(value);
    block[at..at + 2].copy_from_slice(&stored.to_le_bytes());
    stored.to_f32()
}

/// The f32 at byte `at`.
pub(super) fn get_f32(block: &[u8], at: usize) -> f32 {
    f32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// Stores `value` at byte `at`.
pub(super) fn put_f32(block: &mut [u8], at: usize, value: f32) {
    block[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// The u32 at byte `at`.
pub(super) fn get_u32(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// Passes each of 32 five-bit quants with its element: four low bits in 16 bytes at `low` (element `i + 16` in the high
/// nibble of byte `i`), the fifth in the u32 at `high`.
pub(super) fn get_fives(block: &[u8], high: usize, low: usize, mut each: impl FnMut(usize, u8)) {
    let fifth = get_u32(block, high);
    let bit = |i: usize| ((fifth >> i & 1) as u8) << 4;
    for (i, &byte) in block[low..low + 16].iter().enumerate() {
        each(i, byte & 15 | bit(i));
        each(i + 16, byte >> 4 | bit(i + 16));
    }
}

/// Stores 32 five-bit quants where [`get_fives`] finds them.
pub(super) fn put_fives(block: &mut [u8], high: usize, low: usize, quant: impl Fn(usize) -> u8) {
    let mut fifth = 0u32;
    for i in 0..16 {
        let (a, b) = (quant(i), quant(i + 16));
        block[low + i] = a & 15 | b << 4;
        fifth |= u32::from(a >> 4) << i | u32::from(b >> 4) << (i + 16);
    }
    block[high..high + 4].copy_from_slice(&fifth.to_le_bytes());
}

/// Passes each of `2 n` four-bit quants with its element, from `n` bytes: element `i` in the low and element `i + n` in the
/// high nibble of byte `i`.
pub(super) fn get_nibbles(bytes: &[u8], mut each: impl FnMut(usize, u8)) {
    for (i, &byte) in bytes.iter().enumerate() {
        each(i, byte & 15);
        each(i + bytes.len(), byte >> 4);
    }
}

/// Stores `2 n` four-bit quants where [`get_nibbles`] finds them.
pub(super) fn put_nibbles(bytes: &mut [u8], quants: &[u8]) {
    let (low, high) = quants.split_at(bytes.len());
    for (byte, (low, high)) in bytes.iter_mut().zip(low.iter().zip(high)) {
        *byte = low | high << 4;
    }
}

/// The u16 at byte `at`.
pub(super) fn get_u16(block: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

/// `scale` times each magnitude, negative where its bit of `minus` is set.
pub(super) fn put_signed<const N: usize>(out: &mut [f32; N], scale: f32, magnitudes: [u8; N], minus: u8) {
    for (i, (o, magnitude)) in out.iter_mut().zip(magnitudes).enumerate() {
        let value = scale * f32::from(magnitude);
        *o = if minus >> i & 1 == 0 { value } else { -value };
    }
}

/// `scale` times the sum of each value and `shift`.
pub(super) fn put_shifted(out: &mut [f32; 8], scale: f32, values: [u8; 8], shift: f32) {
    for (o, value) in out.iter_mut().zip(values) {
        *o = scale * (f32::from(value as i8) + shift);
    }
}
