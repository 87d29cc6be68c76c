//! The operations as plain functions over slices.
//!
//! A function takes a [`Cpu`] (pool and instruction set), prepared data, and slices with their sizes; it knows nothing
//! of graphs. All matrices are row-major. Sizes are checked: a slice that is too short is an `InvalidArgument`.

// Arrays of vectors are indexed by the loop that is unrolled over them: that reads as the maths does.
#![allow(clippy::needless_range_loop)]

pub mod attention;
pub mod elementwise;
pub mod index;
pub mod matmul;
pub mod memory;
pub mod moe;
pub mod norm;
pub mod pooling;
pub mod reduce;
pub mod rope;
pub(crate) mod scratch;
pub mod shape;
mod strided;

pub use strided::Strided;

use crate::pool::Pool;
use crate::simd::SimdLevel;

/// What a kernel runs on.
#[derive(Clone, Copy, Debug)]
pub struct Cpu<'a> {
    /// The threads.
    pub pool: &'a Pool,
    /// The instructions.
    pub level: SimdLevel,
}

/// Work (in elements moved or multiply-adds, some nanoseconds each dozen) below which a second thread costs more than
/// it brings.
pub(crate) const SMALL_JOB: usize = 1 << 16;

impl Cpu<'_> {
    /// How many tasks to cut `work` elements or multiply-adds into: 1 for a small job, else a few per thread.
    pub(crate) fn parts(self, work: usize) -> usize {
        let threads = self.pool.threads();
        if threads == 1 || work < SMALL_JOB { 1 } else { (work / (SMALL_JOB / 2)).min(4 * threads) }
    }
}
