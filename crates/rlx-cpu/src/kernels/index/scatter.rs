//! Rows that go to their places in a copy of a tensor.

use half::{bf16, f16};
use rlx_ir::bail;
use rlx_ir::convert::{bf16_from_f64, f16_from_f64};

use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::scratch::with_scratch;
use crate::pool::chunks;

/// Elements of a row that are summed together.
const TILE: usize = 512;

/// Where rows go: `x[outer, size, inner]` and `updates[outer, indices, inner]`.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Tensors of rows.
    pub outer: usize,
    /// Rows of each of x.
    pub size: usize,
    /// Elements of a row.
    pub inner: usize,
    /// The row of each update; a negative one skips it.
    pub indices: &'a [i64],
}

/// The updates of each row, in their order.
struct Updates {
    /// Where those of each row begin, and where the last end.
    starts: Vec<usize>,
    list: Vec<usize>,
}

impl Updates {
    fn of(&self, row: usize) -> &[usize] {
        &self.list[self.starts[row]..self.starts[row + 1]]
    }
}

impl Rows<'_> {
    fn check(&self, what: &str, [x, updates, out]: [usize; 3]) -> Result<()> {
        let elems = |rows: usize| self.outer.checked_mul(rows)?.checked_mul(self.inner);
        let Self { outer, size, inner, indices } = self;
        if elems(*size) != Some(x) || x != out || elems(indices.len()) != Some(updates) {
            bail!(
                InvalidArgument,
                "{what} of {} rows into [{outer}, {size}, {inner}]: {updates} elements and {x} into {out}",
                indices.len()
            );
        }
        Ok(())
    }

    /// The row of each update that is not skipped, with the update's number.
    fn targets(&self) -> Result<Vec<(usize, usize)>> {
        let mut targets = Vec::with_capacity(self.indices.len());
        // Of nothing, no row is out of range.
        let indices = if self.outer == 0 { &[] } else { self.indices };
        for (i, &index) in indices.iter().enumerate() {
            match usize::try_from(index) {
                Err(_) => {}
                Ok(row) if row < self.size => targets.push((row, i)),
                Ok(_) => {
                    bail!(InvalidArgument, "index {index} is out of range for {} rows", self.size)
                }
            }
        }
        Ok(targets)
    }

    fn updates(&self) -> Result<Updates> {
        let targets = self.targets()?;
        let mut starts = vec![0; self.size + 1];
        targets.iter().for_each(|(row, _)| starts[row + 1] += 1);
        for row in 0..self.size {
            starts[row + 1] += starts[row];
        }
        let (mut next, mut list) = (starts.clone(), vec![0; targets.len()]);
        for (row, i) in targets {
            list[next[row]] = i;
            next[row] += 1;
        }
        Ok(Updates { starts, list })
    }

    /// Calls `fill` for each row of `out` with its number, its tensor's number, and its elements, in parallel.
    fn each<T: Send>(
        &self,
        cpu: Cpu<'_>,
        out: &mut [T],
        fill: impl Fn(usize, usize, &mut [T]) + Sync,
    ) -> Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        let each = (self.outer * self.size).div_ceil(cpu.parts(out.len()));
        chunks(cpu.pool, out, each * self.inner, |i, out| {
            for (r, out) in out.chunks_exact_mut(self.inner).enumerate() {
                let place = i * each + r;
                fill(place % self.size, place / self.size, out);
            }
        })
    }
}

/// `out = x`, but for the rows that `updates` take the place of; the last of several for one row wins.
///
/// Shapes: as [`Rows`] says. Dtypes: any. Errors: `InvalidArgument` where lengths do not agree, or an index is not below
/// `size`.
pub fn scatter_set<T: Copy + Send + Sync>(
    cpu: Cpu<'_>,
    rows: Rows<'_>,
    x: &[T],
    updates: &[T],
    out: &mut [T],
) -> Result<()> {
    rows.check("scatter", [x.len(), updates.len(), out.len()])?;
    let mut last = vec![None; rows.size];
    for (row, i) in rows.targets()? {
        last[row] = Some(i);
    }
    let (inner, count) = (rows.inner, rows.indices.len());
    rows.each(cpu, out, |row, outer, out| {
        let from = match last[row] {
            Some(i) => &updates[(outer * count + i) * inner..],
            None => &x[(outer * rows.size + row) * inner..],
        };
        out.copy_from_slice(&from[..inner]);
    })
}

/// A number that updates are added to.
pub trait Summed: Copy + Send + Sync {
    /// Adds to `out` the elements of each of `updates`, in order: floats in f64, rounded once; integers wrap.
    fn add<'a>(out: &mut [Self], updates: impl Iterator<Item = &'a [Self]>)
    where
        Self: 'a;
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Summed for $t {
            fn add<'a>(out: &mut [Self], updates: impl Iterator<Item = &'a [Self]>) {
                for update in updates {
                    out.iter_mut().zip(update).for_each(|(o, u)| *o = o.wrapping_add(*u));
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($t:ty, $widen:expr, $round:expr);*) => {$(
        impl Summed for $t {
            fn add<'a>(out: &mut [Self], updates: impl Iterator<Item = &'a [Self]>) {
                with_scratch(out.len(), |sums: &mut [f64]| {
                    sums.iter_mut().zip(&*out).for_each(|(sum, x)| *sum = $widen(*x));
                    for update in updates {
                        sums.iter_mut().zip(update).for_each(|(sum, u)| *sum += $widen(*u));
                    }
                    out.iter_mut().zip(sums).for_each(|(o, sum)| *o = $round(*sum));
                });
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u32);
floats!(f32, f64::from, |x: f64| x as f32; f16, f16::to_f64, f16_from_f64; bf16, bf16::to_f64, bf16_from_f64;
        f64, f64::from, |x: f64| x);

/// `out = x`, with `updates` added to their rows in order: floats in f64, rounded once; integers wrap.
///
/// Shapes: as [`Rows`] says. Errors: `InvalidArgument` where lengths do not agree, or an index is not below `size`.
pub fn scatter_add<T: Summed>(
    cpu: Cpu<'_>,
    rows: Rows<'_>,
    x: &[T],
    updates: &[T],
    out: &mut [T],
) -> Result<()> {
    rows.check("scatter", [x.len(), updates.len(), out.len()])?;
    let own = rows.updates()?;
    let (inner, count) = (rows.inner, rows.indices.len());
    rows.each(cpu, out, |row, outer, out| {
        out.copy_from_slice(&x[(outer * rows.size + row) * inner..][..inner]);
        let own = own.of(row);
        if own.is_empty() {
            return;
        }
        for (t, out) in out.chunks_mut(TILE).enumerate() {
            let (at, len) = (t * TILE, out.len());
            T::add(out, own.iter().map(|i| &updates[(outer * count + i) * inner + at..][..len]));
        }
    })
}
