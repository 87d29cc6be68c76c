//! Functions of two integers or of two floats of any width, element by element.

use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::Pod;
use half::{bf16, f16};
use rlx_ir::bail;
use rlx_ir::ops::elementwise::binary::BinaryKind;

use super::{TASK_ELEMS, TILE};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::scratch::with_scratch;
use crate::kernels::strided::{Axes, Strided};
use crate::pool::chunks;

/// A function of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    /// Toward zero, for integers.
    Div,
    /// With the sign of the first.
    Rem,
    /// NaN where either is NaN.
    Max,
    /// NaN where either is NaN.
    Min,
    /// a to the power of b, of f64.
    Pow,
    /// Bitwise; integers only, as what follows.
    And,
    Or,
    Xor,
    /// Whether both are not 0, as 1 or 0: `and` of `bool`.
    Both,
    /// Whether either is not 0.
    Either,
    /// Whether one is 0 and the other not.
    OneOf,
}

/// A number that [`arithmetic`] computes with.
pub trait Number: Pod + Send + Sync {
    /// `out[i] = op(a[i], b[i])`; false where an integer is divided by 0, or floats have no such function.
    fn apply(op: Arithmetic, a: &[Self], b: &[Self], out: &mut [Self]) -> bool;
}

#[inline(always)]
fn each<T: Copy>(a: &[T], b: &[T], out: &mut [T], f: impl Fn(T, T) -> T) -> bool {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = f(*a, *b);
    }
    true
}

macro_rules! integers {
    ($($t:ty)*) => {$(
        impl Number for $t {
            fn apply(op: Arithmetic, a: &[Self], b: &[Self], out: &mut [Self]) -> bool {
                match op {
                    Arithmetic::Add => each(a, b, out, Self::wrapping_add),
                    Arithmetic::Sub => each(a, b, out, Self::wrapping_sub),
                    Arithmetic::Mul => each(a, b, out, Self::wrapping_mul),
                    Arithmetic::Div | Arithmetic::Rem if b.contains(&0) => false,
                    Arithmetic::Div => each(a, b, out, Self::wrapping_div),
                    Arithmetic::Rem => each(a, b, out, Self::wrapping_rem),
                    Arithmetic::Max => each(a, b, out, Self::max),
                    Arithmetic::Min => each(a, b, out, Self::min),
                    Arithmetic::And => each(a, b, out, |a, b| a & b),
                    Arithmetic::Or => each(a, b, out, |a, b| a | b),
                    Arithmetic::Xor => each(a, b, out, |a, b| a ^ b),
                    Arithmetic::Both => each(a, b, out, |a, b| Self::from(a != 0 && b != 0)),
                    Arithmetic::Either => each(a, b, out, |a, b| Self::from(a != 0 || b != 0)),
                    Arithmetic::OneOf => each(a, b, out, |a, b| Self::from((a != 0) != (b != 0))),
                    Arithmetic::Pow => false,
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($t:ty, $pow:expr;)*) => {$(
        impl Number for $t {
            fn apply(op: Arithmetic, a: &[Self], b: &[Self], out: &mut [Self]) -> bool {
                match op {
                    Arithmetic::Add => each(a, b, out, |a, b| a + b),
                    Arithmetic::Sub => each(a, b, out, |a, b| a - b),
                    Arithmetic::Mul => each(a, b, out, |a, b| a * b),
                    Arithmetic::Div => each(a, b, out, |a, b| a / b),
                    Arithmetic::Rem => each(a, b, out, |a, b| a % b),
                    Arithmetic::Max => each(a, b, out, |a, b| if a > b || a.is_nan() { a } else { b }),
                    Arithmetic::Min => each(a, b, out, |a, b| if a < b || a.is_nan() { a } else { b }),
                    Arithmetic::Pow => $pow(a, b, out),
                    _ => false,
                }
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u32);
// The narrower ones have a function of vectors.
floats! {
    f32, |_, _, _| false;
    f16, |_, _, _| false;
    bf16, |_, _, _| false;
    f64, |a, b, out| each(a, b, out, |a, b| BinaryKind::Pow.apply(a, b));
}

/// `out = op(a, b)` of operands of any strides, which are broadcast by strides of 0. Integers wrap.
///
/// Shapes: `shape` is the result's, for which each operand has strides. Errors: `InvalidArgument` where sizes do not agree, or
/// an integer is divided by 0.
pub fn arithmetic<T: Number>(
    cpu: Cpu<'_>,
    op: Arithmetic,
    shape: &[usize],
    [a, b]: [Strided<'_, T>; 2],
    out: &mut [T],
) -> Result<()> {
    let axes = Axes::new("a function", shape, [a, b])?;
    if axes.elems() != out.len() {
        bail!(InvalidArgument, "{op:?} of {shape:?} into {} elements", out.len());
    }
    let task = if cpu.parts(out.len() * 4) == 1 { out.len().max(1) } else { TASK_ELEMS };
    let refused = AtomicBool::new(false);
    chunks(cpu.pool, out, task, |i, out| {
        with_scratch(2 * TILE, |scratch: &mut [T]| {
            let (x, y) = scratch.split_at_mut(TILE);
            for (t, out) in out.chunks_mut(TILE).enumerate() {
                let (start, count) = (i * task + t * TILE, out.len());
                let a = axes.in_order(0, a.data, start, &mut x[..count]);
                let b = axes.in_order(1, b.data, start, &mut y[..count]);
                if !T::apply(op, a, b, out) {
                    refused.store(true, Ordering::Relaxed);
                }
            }
        });
    })?;
    if refused.into_inner() {
        bail!(InvalidArgument, "integer division by zero");
    }
    Ok(())
}
