//! What the tests of the kernels share: pools, levels, numbers, and the f64 comparison.

use std::num::NonZeroUsize;

use crate::kernels::Cpu;
use crate::pool::Pool;
use crate::simd::SimdLevel;

/// A small generator: the same numbers everywhere.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From -1 to 1.
    pub fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }

    pub fn floats(&mut self, len: usize) -> Vec<f32> {
        (0..len).map(|_| self.float()).collect()
    }
}

pub(crate) fn pool(threads: usize) -> Pool {
    Pool::new(NonZeroUsize::new(threads)).unwrap()
}

/// Calls `f` at every level of this machine with one and with two threads.
pub(crate) fn everywhere(mut f: impl FnMut(Cpu<'_>)) {
    for threads in [1, 2] {
        let pool = pool(threads);
        for level in SimdLevel::available() {
            f(Cpu { pool: &pool, level });
        }
    }
}

/// Asserts that what `f` makes has the same bits with every thread count, and on all levels that fuse.
pub(crate) fn same_bits_everywhere(mut f: impl FnMut(Cpu<'_>) -> Vec<f32>) {
    let mut fused: Option<Vec<u32>> = None;
    let mut plain: Option<Vec<u32>> = None;
    everywhere(|cpu| {
        let bits: Vec<u32> = f(cpu).into_iter().map(canonical).collect();
        let expected = if cpu.level.fuses() { &mut fused } else { &mut plain };
        match expected {
            Some(expected) => assert_eq!(&bits, expected, "{cpu:?}"),
            None => *expected = Some(bits),
        }
    });
}

/// The bits; one pattern for all NaN.
pub(crate) fn canonical(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}

/// Asserts `|y - ref| <= tolerance` element by element; NaN and infinities must be the same.
pub(crate) fn close(what: &str, y: &[f32], reference: &[f64], tolerance: impl Fn(usize) -> f64) {
    assert_eq!(y.len(), reference.len(), "{what}");
    for (i, (&y, &r)) in y.iter().zip(reference).enumerate() {
        let same = (y.is_nan() && r.is_nan()) || f64::from(y) == r;
        let error = (f64::from(y) - r).abs();
        assert!(
            same || error <= tolerance(i),
            "{what}: element {i} is {y:e}, expected {r:e}, off by {error:e}"
        );
    }
}
