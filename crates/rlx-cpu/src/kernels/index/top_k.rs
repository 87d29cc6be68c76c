//! The largest elements of rows.

use half::{bf16, f16};
use rlx_ir::bail;

use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::elementwise::Truth;
use crate::pool::chunks_pair;

/// As many elements are kept in order while a row is read; more are selected from the whole row.
const FEW: usize = 32;

/// The work of one element, in those of [`Cpu::parts`].
const WORK: usize = 16;

/// A number that has a place among others: zeros are equal, and NaN is largest.
pub trait Ordered: Copy + Send + Sync {
    /// What orders as the numbers do.
    type Key: Copy + Ord;
    /// The number's.
    fn key(self) -> Self::Key;
}

macro_rules! floats {
    ($($t:ty, $key:ty);*) => {$(
        impl Ordered for $t {
            type Key = $key;
            #[inline(always)]
            fn key(self) -> $key {
                // By the bits, so that the compiler makes vectors of it for every float.
                let bits = self.to_bits().cast_signed();
                let magnitude = bits & <$key>::MAX;
                let key = if bits < 0 { -magnitude } else { magnitude };
                let infinity = <$t>::INFINITY.to_bits().cast_signed();
                if magnitude > infinity { <$key>::MAX } else { key }
            }
        }
    )*};
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Ordered for $t {
            type Key = Self;
            #[inline(always)]
            fn key(self) -> Self {
                self
            }
        }
    )*};
}

impl Ordered for Truth {
    type Key = bool;
    #[inline(always)]
    fn key(self) -> bool {
        self.get()
    }
}

floats!(f32, i32; f16, i16; bf16, i16; f64, i64);
integers!(i8 i16 i32 i64 u8 u32);

/// An element's place: more is earlier. Of equal keys the lower index comes first.
type Place<K> = (K, std::cmp::Reverse<u32>);

/// The `k` largest elements of each row in descending order, and their indices; equal ones keep their order, and NaN is
/// larger than every number.
///
/// Shapes: x `[rows, cols]`, values and indices `[rows, k]`. Errors: `InvalidArgument` where lengths do not agree, `k` is above
/// `cols`, or `cols` above the range of i32.
pub fn top_k<T: Ordered>(
    cpu: Cpu<'_>,
    [cols, k]: [usize; 2],
    x: &[T],
    values: &mut [T],
    indices: &mut [i32],
) -> Result<()> {
    if k > cols {
        bail!(InvalidArgument, "k is {k}, but the last axis has {cols} elements");
    }
    let rows = x.len().checked_div(cols).unwrap_or(0);
    let fits = |out: usize| rows.checked_mul(k) == Some(out);
    if rows * cols != x.len() || !fits(values.len()) || !fits(indices.len()) || i32::try_from(cols).is_err() {
        let (values, indices) = (values.len(), indices.len());
        bail!(InvalidArgument, "top_k of {k} of {cols}: {} elements into {values} and {indices}", x.len());
    }
    if values.is_empty() {
        return Ok(());
    }
    let each = rows.div_ceil(cpu.parts(x.len().saturating_mul(WORK)));
    chunks_pair(cpu.pool, (values, each * k), (indices, each * k), |i, values, indices| {
        let mut places = Vec::new();
        let outs = values.chunks_exact_mut(k).zip(indices.chunks_exact_mut(k));
        for (x, (values, indices)) in x[i * each * cols..].chunks_exact(cols).zip(outs) {
            places.clear();
            if k <= FEW {
                keep_best(x, k, &mut places);
            } else {
                select(x, k, &mut places);
            }
            for ((value, index), (_, place)) in values.iter_mut().zip(indices).zip(&places) {
                *value = x[place.0 as usize];
                *index = place.0.cast_signed();
            }
        }
    })
}

/// The best `k` so far stay in order: most elements are no better than the last of them.
fn keep_best<T: Ordered>(x: &[T], k: usize, best: &mut Vec<Place<T::Key>>) {
    for (index, x) in x.iter().enumerate() {
        let key = x.key();
        if best.len() == k {
            // An equal one that comes later is not better.
            if best.last().is_some_and(|last| key <= last.0) {
                continue;
            }
            best.pop();
        }
        let at = best.iter().rposition(|place| place.0 >= key).map_or(0, |before| before + 1);
        best.insert(at, (key, std::cmp::Reverse(index as u32)));
    }
}

fn select<T: Ordered>(x: &[T], k: usize, places: &mut Vec<Place<T::Key>>) {
    places.extend(x.iter().enumerate().map(|(index, x)| (x.key(), std::cmp::Reverse(index as u32))));
    if k < places.len() {
        places.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
        places.truncate(k);
    }
    places.sort_unstable_by(|a, b| b.cmp(a));
}
