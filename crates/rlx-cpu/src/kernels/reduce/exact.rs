//! Reductions of integers, which wrap, and of f64.

use bytemuck::Pod;
use rlx_ir::bail;

use super::{Reduction, each_line};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::simd::{Kernel, LANES, Simd};

/// A number that [`reduce_exact`] combines.
pub trait Folded: Pod + Send + Sync {
    /// The reduction of nothing, but for the mean.
    fn unit(reduction: Reduction) -> Self;
    /// The reduction of `x`; for the mean, the sum.
    fn line(reduction: Reduction, x: &[Self]) -> Self;
    /// Combines each of `x` with its place in `out`; for the mean, adds.
    fn row(reduction: Reduction, x: &[Self], out: &mut [Self]);
    /// `self / count`; `None` where the dtype has no means.
    fn mean(self, count: usize) -> Option<Self>;
}

#[inline(always)]
fn fold<T: Copy>(x: &[T], unit: T, f: impl Fn(T, T) -> T) -> T {
    let mut partial = [unit; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        for (partial, x) in partial.iter_mut().zip(x) {
            *partial = f(*partial, *x);
        }
    }
    for (partial, x) in partial.iter_mut().zip(rest) {
        *partial = f(*partial, *x);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            partial[i] = f(partial[i], partial[i + width]);
        }
        width /= 2;
    }
    partial[0]
}

#[inline(always)]
fn each<T: Copy>(x: &[T], out: &mut [T], f: impl Fn(T, T) -> T) {
    for (out, x) in out.iter_mut().zip(x) {
        *out = f(*out, *x);
    }
}

macro_rules! folded {
    ($($t:ty, [$zero:expr, $one:expr, $low:expr, $high:expr], $add:expr, $mul:expr, $max:expr, $min:expr, $mean:expr;)*) => {$(
        impl Folded for $t {
            #[inline(always)]
            fn unit(reduction: Reduction) -> Self {
                match reduction {
                    Reduction::Sum | Reduction::Mean => $zero,
                    Reduction::Max => $low,
                    Reduction::Min => $high,
                    Reduction::Prod => $one,
                }
            }

            #[inline(always)]
            fn line(reduction: Reduction, x: &[Self]) -> Self {
                match reduction {
                    Reduction::Sum | Reduction::Mean => fold(x, $zero, $add),
                    Reduction::Max => fold(x, $low, $max),
                    Reduction::Min => fold(x, $high, $min),
                    Reduction::Prod => fold(x, $one, $mul),
                }
            }

            #[inline(always)]
            fn row(reduction: Reduction, x: &[Self], out: &mut [Self]) {
                match reduction {
                    Reduction::Sum | Reduction::Mean => each(x, out, $add),
                    Reduction::Max => each(x, out, $max),
                    Reduction::Min => each(x, out, $min),
                    Reduction::Prod => each(x, out, $mul),
                }
            }

            #[inline(always)]
            fn mean(self, count: usize) -> Option<Self> {
                $mean(self, count)
            }
        }
    )*};
}

macro_rules! integers {
    ($($t:ty)*) => {
        folded! {$(
            $t, [0, 1, <$t>::MIN, <$t>::MAX], <$t>::wrapping_add, <$t>::wrapping_mul, <$t>::max, <$t>::min, |_, _| None;
        )*}
    };
}

integers!(i8 i16 i32 i64 u8 u32);
folded! {
    f64, [0.0, 1.0, f64::NEG_INFINITY, f64::INFINITY], |a, b| a + b, |a, b| a * b,
    |a: f64, b| if a > b || a.is_nan() { a } else { b }, |a: f64, b| if a < b || a.is_nan() { a } else { b },
    |sum, count| Some(sum / count as f64);
}

/// `out[o, i] = reduce(x[o, :, i])`. Integers wrap, and have no mean.
///
/// Shapes: x `[outer, axis, inner]`, out `[outer, inner]`. Errors: `InvalidArgument` where lengths do not agree, or for the mean of
/// integers.
pub fn reduce_exact<T: Folded>(
    cpu: Cpu<'_>,
    reduction: Reduction,
    sizes: [usize; 3],
    x: &[T],
    out: &mut [T],
) -> Result<()> {
    if reduction == Reduction::Mean && T::unit(reduction).mean(1).is_none() {
        bail!(InvalidArgument, "integers have no mean");
    }
    let axis = sizes[1];
    each_line(cpu, sizes, x, out, |x, out| cpu.level.dispatch(Reduce { reduction, axis, x, out }))
}

struct Reduce<'a, T> {
    reduction: Reduction,
    axis: usize,
    x: &'a [T],
    out: &'a mut [T],
}

impl<T: Folded> Kernel for Reduce<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { reduction, axis, x, out } = self;
        if let [out] = out {
            *out = T::line(reduction, x);
        } else {
            out.fill(T::unit(reduction));
            x.chunks_exact(out.len()).for_each(|x| T::row(reduction, x, out));
        }
        if reduction == Reduction::Mean {
            out.iter_mut().for_each(|out| *out = out.mean(axis).unwrap_or(*out));
        }
    }
}
