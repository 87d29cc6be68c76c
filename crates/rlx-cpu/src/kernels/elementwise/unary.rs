//! Unary functions.

use rlx_ir::bail;

use super::{TASK_ELEMS, in_f32};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::matmul::{Element, load_part, store_part};
use crate::pool::chunks;
use crate::simd::{Kernel, LANES, Simd, math};

/// A function of one float.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Unary {
    Neg,
    Abs,
    /// -1, 0 (of either sign) or 1.
    Sign,
    Exp,
    /// The natural logarithm.
    Log,
    Sqrt,
    Rsqrt,
    /// `1 / x`.
    Reciprocal,
    Sin,
    Cos,
    Tanh,
    Erf,
    Sigmoid,
    Relu,
    /// `x Φ(x)`.
    Gelu,
    GeluTanh,
    Silu,
    Square,
    Floor,
    Ceil,
    /// To nearest, ties to even.
    Round,
}

impl Unary {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::Neg,
        Self::Abs,
        Self::Sign,
        Self::Exp,
        Self::Log,
        Self::Sqrt,
        Self::Rsqrt,
        Self::Reciprocal,
        Self::Sin,
        Self::Cos,
        Self::Tanh,
        Self::Erf,
        Self::Sigmoid,
        Self::Relu,
        Self::Gelu,
        Self::GeluTanh,
        Self::Silu,
        Self::Square,
        Self::Floor,
        Self::Ceil,
        Self::Round,
    ];

    /// Applies it to a vector.
    #[inline(always)]
    pub fn apply<S: Simd>(self, s: S, x: S::F) -> S::F {
        match self {
            Self::Neg => s.neg(x),
            Self::Abs => s.abs(x),
            Self::Sign => {
                let not_above = s.select(s.lt(x, s.zero()), s.splat(-1.0), x);
                s.select(s.lt(s.zero(), x), s.splat(1.0), not_above)
            }
            Self::Exp => math::exp(s, x),
            Self::Log => math::ln(s, x),
            Self::Sqrt => s.sqrt(x),
            Self::Rsqrt => math::rsqrt(s, x),
            Self::Reciprocal => s.div(s.splat(1.0), x),
            Self::Sin => math::sin_cos(s, x).0,
            Self::Cos => math::sin_cos(s, x).1,
            Self::Tanh => math::tanh(s, x),
            Self::Erf => math::erf(s, x),
            Self::Sigmoid => math::sigmoid(s, x),
            Self::Relu => s.max(x, s.zero()),
            Self::Gelu => math::gelu(s, x),
            Self::GeluTanh => math::gelu_tanh(s, x),
            Self::Silu => math::silu(s, x),
            Self::Square => s.mul(x, x),
            Self::Floor => s.floor(x),
            Self::Ceil => s.ceil(x),
            Self::Round => s.round(x),
        }
    }
}

/// `out[i] = op(x[i])`.
///
/// Shapes: slices of one length. Dtypes: f32, f16, bf16. Errors: `InvalidArgument` for different lengths.
pub fn unary<T: Element>(cpu: Cpu<'_>, op: Unary, x: &[T], out: &mut [T]) -> Result<()> {
    if x.len() != out.len() {
        bail!(InvalidArgument, "{op:?} of {} elements into {}", x.len(), out.len());
    }
    let task = if cpu.parts(x.len() * 4) == 1 { x.len().max(1) } else { TASK_ELEMS };
    chunks(cpu.pool, out, task, |i, out| {
        let x = &x[i * task..][..out.len()];
        if let (Some(x), Some(out)) = (T::as_f32(x), T::as_f32_mut(out)) {
            return cpu.level.dispatch(Apply { op, x, out });
        }
        in_f32(cpu.level, [x], out, |[x], out| cpu.level.dispatch(Apply { op, x, out }));
    })
}

struct Apply<'a> {
    op: Unary,
    x: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        macro_rules! each {
            ($($op:ident)*) => {
                // One loop for each function, so that the choice is outside of it.
                match self.op {
                    $(Unary::$op => {
                        for (x, out) in self.x.chunks(LANES).zip(self.out.chunks_mut(LANES)) {
                            store_part(s, Unary::$op.apply(s, load_part(s, x)), out);
                        }
                    })*
                }
            };
        }
        each!(Neg Abs Sign Exp Log Sqrt Rsqrt Reciprocal Sin Cos Tanh Erf Sigmoid Relu Gelu GeluTanh Silu Square Floor Ceil
              Round);
    }
}
