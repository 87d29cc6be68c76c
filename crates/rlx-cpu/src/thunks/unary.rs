//! Functions of one element: the unary ops, `gelu` and `silu`.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::activation::gelu::{Approximate, Gelu};
use rlx_ir::ops::elementwise::unary::{Unary as UnaryOp, UnaryKind};
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, is_small_float, require};
use crate::error::{Error, Result};
use crate::kernels::elementwise::{Exact, Unary, logical_not, unary, unary_exact};
use crate::kernels::matmul::Element;

/// The entries: one per op, all with one thunk.
pub(crate) static ENTRIES: &[Entry] = &{
    const fn entry(op: &'static str) -> Entry {
        Entry::new(op, supports, build)
    }
    [
        entry("neg"),
        entry("abs"),
        entry("sign"),
        entry("exp"),
        entry("log"),
        entry("sqrt"),
        entry("rsqrt"),
        entry("recip"),
        entry("sin"),
        entry("cos"),
        entry("tanh"),
        entry("erf"),
        entry("sigmoid"),
        entry("relu"),
        entry("floor"),
        entry("ceil"),
        entry("round"),
        Entry::new("not", supports_not, |_| Ok(Box::new(Not))),
        entry("gelu"),
        entry("silu"),
    ]
};

fn function(facts: &OpFacts<'_>) -> Option<Unary> {
    if let Some(gelu) = facts.op.downcast::<Gelu>() {
        return Some(match gelu.approximate {
            Approximate::None => Unary::Gelu,
            Approximate::Tanh => Unary::GeluTanh,
        });
    }
    if facts.op.is::<rlx_ir::ops::activation::silu::Silu>() {
        return Some(Unary::Silu);
    }
    unary_function(facts.op.downcast::<UnaryOp>()?.kind)
}

/// The kernel's name of a unary function; `None` where it has none.
pub(crate) fn unary_function(kind: UnaryKind) -> Option<Unary> {
    Some(match kind {
        UnaryKind::Neg => Unary::Neg,
        UnaryKind::Abs => Unary::Abs,
        UnaryKind::Sign => Unary::Sign,
        UnaryKind::Exp => Unary::Exp,
        UnaryKind::Log => Unary::Log,
        UnaryKind::Sqrt => Unary::Sqrt,
        UnaryKind::Rsqrt => Unary::Rsqrt,
        UnaryKind::Recip => Unary::Reciprocal,
        UnaryKind::Sin => Unary::Sin,
        UnaryKind::Cos => Unary::Cos,
        UnaryKind::Tanh => Unary::Tanh,
        UnaryKind::Erf => Unary::Erf,
        UnaryKind::Sigmoid => Unary::Sigmoid,
        UnaryKind::Relu => Unary::Relu,
        UnaryKind::Floor => Unary::Floor,
        UnaryKind::Ceil => Unary::Ceil,
        UnaryKind::Round => Unary::Round,
        UnaryKind::Not => return None,
    })
}

/// Whether there is a kernel: composites have none beyond the small floats.
fn takes(facts: &OpFacts<'_>) -> bool {
    is_small_float(facts.results[0].dtype) || facts.op.is::<UnaryOp>()
}

fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[
        (function(facts).is_some(), "another function"),
        (takes(facts), "f32, f16 or bf16"),
        (all_dense(facts), "dense operands"),
    ])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(function) = function(facts) else { bail!(Bug, "no kernel for {}", facts.op.name()) };
    Ok(match facts.results[0].dtype {
        DType::F32 => Box::new(Run::<f32>(function, Default::default())),
        DType::F16 => Box::new(Run::<f16>(function, Default::default())),
        DType::BF16 => Box::new(Run::<bf16>(function, Default::default())),
        DType::F64 => Box::new(RunExact::<f64>(function, Default::default())),
        DType::I8 => Box::new(RunExact::<i8>(function, Default::default())),
        DType::I16 => Box::new(RunExact::<i16>(function, Default::default())),
        DType::I32 => Box::new(RunExact::<i32>(function, Default::default())),
        DType::I64 => Box::new(RunExact::<i64>(function, Default::default())),
        DType::U8 => Box::new(RunExact::<u8>(function, Default::default())),
        DType::U32 => Box::new(RunExact::<u32>(function, Default::default())),
        other => bail!(Bug, "no {} of {other}", facts.op.name()),
    })
}

#[derive(Debug)]
struct Run<T>(Unary, std::marker::PhantomData<T>);

impl<T: Element + bytemuck::Pod> Thunk for Run<T> {
    fn kernel(&self) -> &str {
        "unary"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        unary(call.cpu, self.0, call.read::<T>(0)?, call.write::<T>(0)?)
    }
}

#[derive(Debug)]
struct RunExact<T>(Unary, std::marker::PhantomData<T>);

impl<T: Exact + std::fmt::Debug> Thunk for RunExact<T> {
    fn kernel(&self) -> &str {
        "unary exact"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        unary_exact(call.cpu, self.0, call.read::<T>(0)?, call.write::<T>(0)?)
    }
}

fn supports_not(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

#[derive(Debug)]
struct Not;

impl Thunk for Not {
    fn kernel(&self) -> &str {
        "not"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        logical_not(call.cpu, call.read(0)?, call.write(0)?)
    }
}
