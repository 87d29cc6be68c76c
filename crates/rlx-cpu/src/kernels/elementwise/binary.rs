//! Functions of two floats.

use rlx_ir::bail;

use super::{TASK_ELEMS, TILE, in_f32};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::matmul::{Activation, Element, load_part, store_part};
use crate::kernels::memory::Convert;
use crate::kernels::scratch::with_scratch;
use crate::kernels::strided::{Axes, Strided};
use crate::pool::chunks;
use crate::simd::{Kernel, LANES, Simd, math::pow};

/// A function of two floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    /// NaN where either is NaN.
    Max,
    /// NaN where either is NaN.
    Min,
    /// a to the power of b.
    Pow,
}

impl Binary {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::Add, Self::Sub, Self::Mul, Self::Div, Self::Max, Self::Min, Self::Pow];

    /// Applies it to vectors.
    #[inline(always)]
    pub fn apply<S: Simd>(self, s: S, a: S::F, b: S::F) -> S::F {
        match self {
            Self::Add => s.add(a, b),
            Self::Sub => s.sub(a, b),
            Self::Mul => s.mul(a, b),
            Self::Div => s.div(a, b),
            Self::Max => s.max(a, b),
            Self::Min => s.min(a, b),
            Self::Pow => pow(s, a, b),
        }
    }
}

/// `out[i] = op(a[i], b[i % b.len()])`: b is as long as a, a last axis (a bias, a scale), or one value.
///
/// Dtypes: f32, f16, bf16. Errors: `InvalidArgument` where the length of a is not that of out or no multiple of b's.
pub fn binary<T: Element>(cpu: Cpu<'_>, op: Binary, a: &[T], b: &[T], out: &mut [T]) -> Result<()> {
    if a.len() != out.len() || (b.is_empty() && !a.is_empty()) || !a.len().is_multiple_of(b.len().max(1)) {
        bail!(InvalidArgument, "{op:?} of {} and {} elements into {}", a.len(), b.len(), out.len());
    }
    let period = b.len().max(1);
    let whole = cpu.parts(a.len() * 2) == 1;
    let task = if whole { a.len().max(1) } else { TASK_ELEMS };
    chunks(cpu.pool, out, task, |i, out| {
        let first = i * task;
        let a = &a[first..][..out.len()];
        if period == 1 {
            let mut one = [0.0];
            cpu.level.dispatch(Convert { x: b, out: &mut one });
            return apply(cpu, op, a, None, &one, out);
        }
        let mut done = 0;
        while done < out.len() {
            let at = (first + done) % period;
            let count = (period - at).min(out.len() - done);
            let (a, b, out) = (&a[done..][..count], &b[at..][..count], &mut out[done..][..count]);
            apply(cpu, op, a, Some(b), &[], out);
            done += count;
        }
    })
}

/// `b`, or `one` value for all elements.
fn apply<T: Element>(cpu: Cpu<'_>, op: Binary, a: &[T], b: Option<&[T]>, one: &[f32], out: &mut [T]) {
    let level = cpu.level;
    if let (Some(a), Some(out)) = (T::as_f32(a), T::as_f32_mut(out)) {
        let b = b.and_then(T::as_f32).unwrap_or(one);
        return level.dispatch(Apply { op, a, b, out });
    }
    match b {
        Some(b) => in_f32(level, [a, b], out, |[a, b], out| level.dispatch(Apply { op, a, b, out })),
        None => in_f32(level, [a], out, |[a], out| level.dispatch(Apply { op, a, b: one, out })),
    }
}

/// [`binary`] of operands of any strides, which are broadcast by strides of 0: a column over rows, a row over columns.
///
/// Shapes: `shape` is the result's, for which each operand has strides. Errors: `InvalidArgument` where sizes do not agree.
pub fn binary_strided<T: Element>(
    cpu: Cpu<'_>,
    op: Binary,
    shape: &[usize],
    [a, b]: [Strided<'_, T>; 2],
    out: &mut [T],
) -> Result<()> {
    let axes = Axes::new("a function", shape, [a, b])?;
    if axes.elems() != out.len() {
        bail!(InvalidArgument, "{op:?} of {shape:?} into {} elements", out.len());
    }
    let task = if cpu.parts(out.len() * 4) == 1 { out.len().max(1) } else { TASK_ELEMS };
    chunks(cpu.pool, out, task, |i, out| {
        with_scratch(3 * TILE, |scratch: &mut [f32]| {
            let (x, rest) = scratch.split_at_mut(TILE);
            let (y, z) = rest.split_at_mut(TILE);
            for (t, out) in out.chunks_mut(TILE).enumerate() {
                let (start, count) = (i * task + t * TILE, out.len());
                let a = widened(cpu, &axes, 0, a.data, start, &mut x[..count]);
                let b = widened(cpu, &axes, 1, b.data, start, &mut y[..count]);
                match T::as_f32_mut(out) {
                    Some(out) => cpu.level.dispatch(Apply { op, a, b, out }),
                    None => {
                        let z = &mut z[..count];
                        cpu.level.dispatch(Apply { op, a, b, out: z });
                        cpu.level.dispatch(Convert { x: z, out });
                    }
                }
            }
        });
    })
}

/// The elements of operand `n` from number `start` on, as f32: where they are, or in `scratch`.
pub(super) fn widened<'a, T: Element>(
    cpu: Cpu<'_>,
    axes: &Axes<2>,
    n: usize,
    data: &'a [T],
    start: usize,
    scratch: &'a mut [f32],
) -> &'a [f32] {
    let count = scratch.len();
    match (T::as_f32(data), axes.is_dense(n)) {
        (Some(data), true) => return &data[start..][..count],
        (Some(data), false) => axes.read(n, data, start, scratch),
        (None, true) => cpu.level.dispatch(Convert { x: &data[start..][..count], out: &mut *scratch }),
        (None, false) => {
            let mut narrow = [T::default(); TILE];
            axes.read(n, data, start, &mut narrow[..count]);
            cpu.level.dispatch(Convert { x: &narrow[..count], out: &mut *scratch });
        }
    }
    scratch
}

/// b is as long as a, or one value.
struct Apply<'a> {
    op: Binary,
    a: &'a [f32],
    b: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let one = s.splat(self.b.first().copied().unwrap_or_default());
        let repeat = self.b.len() < self.a.len();
        macro_rules! each {
            ($($op:ident)*) => {
                match self.op {
                    $(Binary::$op => {
                        for (i, (a, out)) in self.a.chunks(LANES).zip(self.out.chunks_mut(LANES)).enumerate() {
                            let b = if repeat { one } else { load_part(s, &self.b[i * LANES..][..a.len()]) };
                            store_part(s, Binary::$op.apply(s, load_part(s, a), b), out);
                        }
                    })*
                }
            };
        }
        each!(Add Sub Mul Div Max Min Pow);
    }
}

/// `out[r, c] = activation(gate[r, c]) * up[r, c]` for x `[rows, 2 * cols]` that holds the gates of a row, then its
/// ups.
///
/// Dtypes: f32, f16, bf16. Errors: `InvalidArgument` where the lengths do not agree.
pub fn gated<T: Element>(
    cpu: Cpu<'_>,
    activation: Activation,
    cols: usize,
    x: &[T],
    out: &mut [T],
) -> Result<()> {
    if x.len() != 2 * out.len() || !out.len().is_multiple_of(cols.max(1)) || (cols == 0 && !out.is_empty()) {
        bail!(InvalidArgument, "gate of rows of 2 x {cols}: {} elements into {}", x.len(), out.len());
    }
    if out.is_empty() {
        return Ok(());
    }
    let rows = (out.len() / cols).div_ceil(cpu.parts(out.len() * 4));
    chunks(cpu.pool, out, rows * cols, |i, out| {
        for (r, out) in out.chunks_mut(cols).enumerate() {
            let (gate, up) = x[2 * cols * (i * rows + r)..][..2 * cols].split_at(cols);
            if let (Some(gate), Some(up), Some(out)) = (T::as_f32(gate), T::as_f32(up), T::as_f32_mut(out)) {
                cpu.level.dispatch(Gated { activation, gate, up, out });
                continue;
            }
            in_f32(cpu.level, [gate, up], out, |[gate, up], out| {
                cpu.level.dispatch(Gated { activation, gate, up, out });
            });
        }
    })
}

struct Gated<'a> {
    activation: Activation,
    gate: &'a [f32],
    up: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Gated<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // One loop for each activation, so that the choice is outside of it.
        macro_rules! each {
            ($($name:ident)*) => {
                match self.activation {
                    $(Activation::$name => {
                        let both = self.gate.chunks(LANES).zip(self.up.chunks(LANES));
                        for ((gate, up), out) in both.zip(self.out.chunks_mut(LANES)) {
                            let gate = Activation::$name.apply(s, load_part(s, gate));
                            store_part(s, s.mul(gate, load_part(s, up)), out);
                        }
                    })*
                }
            };
        }
        each!(None Relu Gelu GeluTanh Silu);
    }
}
