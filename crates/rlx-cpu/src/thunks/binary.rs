//! Functions of two elements, and the gate of a gated unit.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::activation::glu::Glu;
use rlx_ir::ops::elementwise::binary::{Binary as BinaryOp, BinaryKind};
use rlx_ir::{DType, Dim, Type, bail};

use super::linear::epilogue_activation;
use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, is_small_float, require};
use crate::error::{Error, Result};
use crate::kernels::Strided;
use crate::kernels::elementwise::{Arithmetic, Binary, Number, arithmetic, binary, binary_strided, gated};
use crate::kernels::matmul::{Activation, Element};

/// The entries of the binary functions.
pub(crate) static ENTRIES: &[Entry] = &{
    const fn entry(op: &'static str) -> Entry {
        Entry::new(op, supports, build)
    }
    [
        entry("add"),
        entry("sub"),
        entry("mul"),
        entry("div"),
        entry("rem"),
        entry("pow"),
        entry("max"),
        entry("min"),
        entry("and"),
        entry("or"),
        entry("xor"),
    ]
};

/// `glu`.
pub(crate) static GLU: Entry = Entry::new("glu", supports_glu, build_glu);

/// The kernel's name of a binary function; `None` where it has none.
pub(crate) fn binary_function(kind: BinaryKind) -> Option<Binary> {
    Some(match kind {
        BinaryKind::Add => Binary::Add,
        BinaryKind::Sub => Binary::Sub,
        BinaryKind::Mul => Binary::Mul,
        BinaryKind::Div => Binary::Div,
        BinaryKind::Max => Binary::Max,
        BinaryKind::Min => Binary::Min,
        BinaryKind::Pow => Binary::Pow,
        _ => return None,
    })
}

/// Whether `b` has the shape of `a`, or is one value, or has the last axes of `a`, so that it repeats over `a`.
pub(crate) fn repeats_over(a: &Type, b: &Type) -> bool {
    let one = Dim::constant(1);
    let b_dims: Vec<&Dim> = b.shape.dims().iter().skip_while(|d| **d == one).collect();
    let a_dims = a.shape.dims();
    b_dims.len() <= a_dims.len()
        && a_dims[a_dims.len() - b_dims.len()..].iter().zip(&b_dims).all(|(x, y)| x == *y)
}

/// Whether the operands fit as they are, or exchanged.
fn order(facts: &OpFacts<'_>) -> Option<bool> {
    let (a, b, out) = (&facts.operands[0].ty, &facts.operands[1].ty, &facts.results[0]);
    let kind = facts.op.downcast::<BinaryOp>()?.kind;
    let commutes = matches!(kind, BinaryKind::Add | BinaryKind::Mul | BinaryKind::Max | BinaryKind::Min);
    if a.shape == out.shape && repeats_over(a, b) {
        return Some(false);
    }
    (commutes && b.shape == out.shape && repeats_over(b, a)).then_some(true)
}

/// What runs a function of two elements.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Floats, one of which repeats over the other; whether that is the first.
    Repeated(Binary, bool),
    /// Floats of any strides.
    Strided(Binary),
    /// Numbers of any dtype and strides.
    Arithmetic(Arithmetic),
}

fn way(facts: &OpFacts<'_>) -> Option<Way> {
    let kind = facts.op.downcast::<BinaryOp>()?.kind;
    let dtype = facts.results[0].dtype;
    Some(match binary_function(kind).filter(|_| is_small_float(dtype)) {
        Some(function) => match order(facts).filter(|_| all_dense(facts)) {
            Some(exchanged) => Way::Repeated(function, exchanged),
            None => Way::Strided(function),
        },
        None => Way::Arithmetic(arithmetic_function(kind, dtype == DType::Bool)),
    })
}

fn arithmetic_function(kind: BinaryKind, logical: bool) -> Arithmetic {
    match kind {
        BinaryKind::Add => Arithmetic::Add,
        BinaryKind::Sub => Arithmetic::Sub,
        BinaryKind::Mul => Arithmetic::Mul,
        BinaryKind::Div => Arithmetic::Div,
        BinaryKind::Rem => Arithmetic::Rem,
        BinaryKind::Max => Arithmetic::Max,
        BinaryKind::Min => Arithmetic::Min,
        BinaryKind::And if logical => Arithmetic::Both,
        BinaryKind::Or if logical => Arithmetic::Either,
        BinaryKind::Xor if logical => Arithmetic::OneOf,
        BinaryKind::And => Arithmetic::And,
        BinaryKind::Or => Arithmetic::Or,
        BinaryKind::Xor => Arithmetic::Xor,
        BinaryKind::Pow => Arithmetic::Pow,
    }
}

fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[(way(facts).is_some(), "another function")])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    match way(facts) {
        Some(way) => Ok(Box::new(way)),
        None => bail!(Bug, "no kernel for {}", facts.op.name()),
    }
}

/// Both operands, as they are broadcast to the result.
pub(super) fn broadcast<R>(
    call: &StepCall<'_>,
    run: impl FnOnce(&[usize], [&[usize]; 2]) -> Result<R>,
) -> Result<R> {
    let shape = call.result_shape(0);
    let [a, b] = [0, 1].map(|i| call.broadcast_strides(i, shape.len()));
    run(&shape, [&a, &b])
}

impl Way {
    fn floats<T: Element + bytemuck::Pod>(self, call: &mut StepCall<'_>) -> Result<()> {
        let (a, b, out) = (call.read::<T>(0)?, call.read::<T>(1)?, call.write::<T>(0)?);
        match self {
            Self::Repeated(function, false) => binary(call.cpu, function, a, b, out),
            Self::Repeated(function, true) => binary(call.cpu, function, b, a, out),
            Self::Strided(function) => broadcast(call, |shape, [of_a, of_b]| {
                let operands = [Strided { data: a, strides: of_a }, Strided { data: b, strides: of_b }];
                binary_strided(call.cpu, function, shape, operands, out)
            }),
            Self::Arithmetic(_) => bail!(Bug, "{self:?} is no function of floats"),
        }
    }

    fn numbers<T: Number>(call: &mut StepCall<'_>, function: Arithmetic) -> Result<()> {
        let (a, b, out) = (call.read::<T>(0)?, call.read::<T>(1)?, call.write::<T>(0)?);
        broadcast(call, |shape, [of_a, of_b]| {
            let operands = [Strided { data: a, strides: of_a }, Strided { data: b, strides: of_b }];
            arithmetic(call.cpu, function, shape, operands, out)
        })
    }
}

impl Thunk for Way {
    fn kernel(&self) -> &str {
        match self {
            Self::Repeated(..) => "binary",
            Self::Strided(_) => "binary strided",
            Self::Arithmetic(_) => "arithmetic",
        }
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.results[0].ty.dtype;
        let Self::Arithmetic(function) = *self else {
            return match dtype {
                DType::F16 => self.floats::<f16>(call),
                DType::BF16 => self.floats::<bf16>(call),
                _ => self.floats::<f32>(call),
            };
        };
        match dtype {
            DType::F32 => Self::numbers::<f32>(call, function),
            DType::F16 => Self::numbers::<f16>(call, function),
            DType::BF16 => Self::numbers::<bf16>(call, function),
            DType::F64 => Self::numbers::<f64>(call, function),
            DType::I8 => Self::numbers::<i8>(call, function),
            DType::I16 => Self::numbers::<i16>(call, function),
            DType::I32 => Self::numbers::<i32>(call, function),
            DType::I64 => Self::numbers::<i64>(call, function),
            DType::U8 | DType::Bool => Self::numbers::<u8>(call, function),
            DType::U32 => Self::numbers::<u32>(call, function),
            _ => bail!(Bug, "no arithmetic of {dtype}"),
        }
    }
}

fn glu_activation(facts: &OpFacts<'_>) -> Option<Activation> {
    epilogue_activation(facts.op.downcast::<Glu>()?.activation)
}

fn supports_glu(facts: &OpFacts<'_>) -> Support {
    require(&[
        (glu_activation(facts).is_some(), "an activation among none, relu, gelu, gelu_tanh, silu"),
        (is_small_float(facts.results[0].dtype), "f32, f16 or bf16"),
        (all_dense(facts), "dense operands"),
    ])
}

fn build_glu(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(activation) = glu_activation(facts) else { bail!(Bug, "glu without a kernel") };
    Ok(match facts.results[0].dtype {
        DType::F16 => Box::new(Gated::<f16>(activation, Default::default())),
        DType::BF16 => Box::new(Gated::<bf16>(activation, Default::default())),
        _ => Box::new(Gated::<f32>(activation, Default::default())),
    })
}

#[derive(Debug)]
struct Gated<T>(Activation, std::marker::PhantomData<T>);

impl<T: Element + bytemuck::Pod> Thunk for Gated<T> {
    fn kernel(&self) -> &str {
        "gated"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let cols = call.result_shape(0).last().copied().unwrap_or(1);
        gated(call.cpu, self.0, cols, call.read::<T>(0)?, call.write::<T>(0)?)
    }
}
