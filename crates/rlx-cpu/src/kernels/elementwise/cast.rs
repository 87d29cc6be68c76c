//! Conversions between the scalar dtypes.

use half::{bf16, f16};
use rlx_ir::bail;
use rlx_ir::convert::{bf16_from_f64, bf16_from_i64, f16_from_f64, f16_from_i64};

use super::TASK_ELEMS;
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::matmul::Element;
use crate::kernels::memory::Convert;
use crate::pool::chunks;

/// A scalar dtype in memory; `bool` is [`Truth`](super::Truth).
pub trait Scalar: Copy + Send + Sync + 'static {
    /// Exactly, as the wide form that holds it.
    fn widen(self) -> Wide;
    /// Rounded to nearest, ties to even, for floats; for integers floats are truncated toward zero and clamped
    /// to the range, NaN to 0, and integers keep their low bits.
    fn narrow(x: Wide) -> Self;
}

/// A value of any scalar dtype.
#[derive(Clone, Copy, Debug)]
pub enum Wide {
    /// A float that is at most f32.
    Single(f32),
    /// Any float.
    Double(f64),
    /// Any integer.
    Int(i64),
}

macro_rules! float {
    ($t:ty, $wide:ident, $widen:expr, $from_f32:expr, $from_f64:expr, $from_int:expr) => {
        impl Scalar for $t {
            #[inline(always)]
            fn widen(self) -> Wide {
                Wide::$wide($widen(self))
            }
            #[inline(always)]
            fn narrow(x: Wide) -> Self {
                match x {
                    Wide::Single(x) => $from_f32(x),
                    Wide::Double(x) => $from_f64(x),
                    Wide::Int(x) => $from_int(x),
                }
            }
        }
    };
}

float!(f32, Single, |x| x, |x| x, |x: f64| x as f32, |x: i64| x as f32);
float!(f64, Double, |x| x, f64::from, |x| x, |x: i64| x as f64);
float!(f16, Single, f16::to_f32, f16::from_f32, f16_from_f64, f16_from_i64);
float!(bf16, Single, bf16::to_f32, bf16::from_f32, bf16_from_f64, bf16_from_i64);

macro_rules! int {
    ($($t:ty)*) => {$(
        impl Scalar for $t {
            #[inline(always)]
            fn widen(self) -> Wide {
                Wide::Int(i64::from(self))
            }
            #[inline(always)]
            fn narrow(x: Wide) -> Self {
                match x {
                    Wide::Single(x) => x as $t,
                    Wide::Double(x) => x as $t,
                    // The low bits.
                    Wide::Int(x) => x as $t,
                }
            }
        }
    )*};
}

int!(i8 i16 i32 u8 u32 i64);

/// [`cast`] among f32, f16 and bf16.
///
/// Errors: `InvalidArgument` for different lengths.
pub fn cast_floats<A: Element, B: Element>(cpu: Cpu<'_>, x: &[A], out: &mut [B]) -> Result<()> {
    if x.len() != out.len() {
        bail!(InvalidArgument, "cast of {} elements into {}", x.len(), out.len());
    }
    let task = if cpu.parts(x.len()) == 1 { x.len().max(1) } else { TASK_ELEMS };
    chunks(cpu.pool, out, task, |i, out| {
        cpu.level.dispatch(Convert { x: &x[i * task..][..out.len()], out });
    })
}

/// `out[i] = x[i]` in another dtype.
///
/// Errors: `InvalidArgument` for different lengths.
pub fn cast<A: Scalar, B: Scalar>(cpu: Cpu<'_>, x: &[A], out: &mut [B]) -> Result<()> {
    if x.len() != out.len() {
        bail!(InvalidArgument, "cast of {} elements into {}", x.len(), out.len());
    }
    let task = if cpu.parts(x.len()) == 1 { x.len().max(1) } else { TASK_ELEMS };
    chunks(cpu.pool, out, task, |i, out| {
        for (x, out) in x[i * task..].iter().zip(out) {
            *out = B::narrow(x.widen());
        }
    })
}
