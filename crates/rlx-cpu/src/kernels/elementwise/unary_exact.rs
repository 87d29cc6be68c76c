//! Functions of one integer or of one f64, and of one truth.

use bytemuck::Pod;
use rlx_ir::bail;
use rlx_ir::ops::elementwise::unary::UnaryKind;

use super::{Truth, Unary, each_tile};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::simd::{Kernel, Simd};

/// A number that [`unary_exact`] computes with.
pub trait Exact: Pod + Send + Sync {
    /// `out[i] = op(x[i])`; false where the dtype has no such function.
    fn apply(op: Unary, x: &[Self], out: &mut [Self]) -> bool;
}

#[inline(always)]
fn each<T: Copy>(x: &[T], out: &mut [T], f: impl Fn(T) -> T) -> bool {
    for (out, x) in out.iter_mut().zip(x) {
        *out = f(*x);
    }
    true
}

macro_rules! integers {
    ($($t:ty, $abs:expr, $sign:expr;)*) => {$(
        impl Exact for $t {
            #[inline(always)]
            fn apply(op: Unary, x: &[Self], out: &mut [Self]) -> bool {
                match op {
                    Unary::Neg => each(x, out, Self::wrapping_neg),
                    Unary::Abs => each(x, out, $abs),
                    Unary::Sign => each(x, out, $sign),
                    Unary::Relu => each(x, out, |x| x.max(0)),
                    _ => false,
                }
            }
        }
    )*};
}

integers! {
    i8, i8::wrapping_abs, i8::signum;
    i16, i16::wrapping_abs, i16::signum;
    i32, i32::wrapping_abs, i32::signum;
    i64, i64::wrapping_abs, i64::signum;
    u8, |x| x, |x| x.min(1);
    u32, |x| x, |x| x.min(1);
}

impl Exact for f64 {
    #[inline(always)]
    fn apply(op: Unary, x: &[Self], out: &mut [Self]) -> bool {
        match op {
            Unary::Neg => each(x, out, |x| -x),
            Unary::Abs => each(x, out, Self::abs),
            Unary::Sign => each(x, out, |x| {
                let not_above = if x < 0.0 { -1.0 } else { x };
                if x > 0.0 { 1.0 } else { not_above }
            }),
            Unary::Sqrt => each(x, out, Self::sqrt),
            Unary::Rsqrt => each(x, out, |x| 1.0 / x.sqrt()),
            Unary::Reciprocal => each(x, out, |x| 1.0 / x),
            Unary::Relu => each(x, out, |x| if x < 0.0 { 0.0 } else { x }),
            Unary::Floor => each(x, out, Self::floor),
            Unary::Ceil => each(x, out, Self::ceil),
            Unary::Round => each(x, out, Self::round_ties_even),
            Unary::Square => each(x, out, |x| x * x),
            // No vectors are worth it: by the definition.
            Unary::Exp => each(x, out, |x| UnaryKind::Exp.apply(x)),
            Unary::Log => each(x, out, |x| UnaryKind::Log.apply(x)),
            Unary::Sin => each(x, out, |x| UnaryKind::Sin.apply(x)),
            Unary::Cos => each(x, out, |x| UnaryKind::Cos.apply(x)),
            Unary::Tanh => each(x, out, |x| UnaryKind::Tanh.apply(x)),
            Unary::Erf => each(x, out, |x| UnaryKind::Erf.apply(x)),
            Unary::Sigmoid => each(x, out, |x| UnaryKind::Sigmoid.apply(x)),
            Unary::Gelu | Unary::GeluTanh | Unary::Silu => false,
        }
    }
}

/// `out[i] = op(x[i])`. Integers wrap.
///
/// Shapes: slices of one length. Errors: `InvalidArgument` for different lengths, or where the dtype has no such function: what
/// needs fractions has none of integers, and what other functions make up has none of f64.
pub fn unary_exact<T: Exact>(cpu: Cpu<'_>, op: Unary, x: &[T], out: &mut [T]) -> Result<()> {
    if x.len() != out.len() || !T::apply(op, &[], &mut []) {
        bail!(InvalidArgument, "{op:?} of {} elements into {}", x.len(), out.len());
    }
    each_tile(cpu, 4, out, |start, out| cpu.level.dispatch(Apply { op, x: &x[start..], out }))
}

struct Apply<'a, T> {
    op: Unary,
    x: &'a [T],
    out: &'a mut [T],
}

impl<T: Exact> Kernel for Apply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        T::apply(self.op, self.x, self.out);
    }
}

/// `out[i] = !x[i]`.
///
/// Errors: `InvalidArgument` for different lengths.
pub fn logical_not(cpu: Cpu<'_>, x: &[Truth], out: &mut [Truth]) -> Result<()> {
    if x.len() != out.len() {
        bail!(InvalidArgument, "not of {} elements into {}", x.len(), out.len());
    }
    each_tile(cpu, 1, out, |start, out| {
        for (out, x) in out.iter_mut().zip(&x[start..]) {
            *out = Truth::from(!x.get());
        }
    })
}
