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
use crate::kernels::elementwise::{Binary, binary, gated};
use crate::kernels::matmul::{Activation, Element};

/// The entries of the binary functions.
pub(crate) static ENTRIES: &[Entry] = &{
    const fn entry(op: &'static str) -> Entry {
        Entry::new(op, supports, build)
    }
    [entry("add"), entry("sub"), entry("mul"), entry("div"), entry("max"), entry("min")]
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

fn supports(facts: &OpFacts<'_>) -> Support {
    let kind = facts.op.downcast::<BinaryOp>().and_then(|b| binary_function(b.kind));
    require(&[
        (kind.is_some(), "another function"),
        (is_small_float(facts.results[0].dtype), "f32, f16 or bf16"),
        (all_dense(facts), "dense operands"),
        (order(facts).is_some(), "one operand of the result's shape, over which the other repeats"),
    ])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let kind = facts.op.downcast::<BinaryOp>().and_then(|b| binary_function(b.kind));
    let (Some(function), Some(exchanged)) = (kind, order(facts)) else {
        bail!(Bug, "no kernel for {}", facts.op.name())
    };
    Ok(match facts.results[0].dtype {
        DType::F16 => Box::new(Run::<f16> { function, exchanged, element: Default::default() }),
        DType::BF16 => Box::new(Run::<bf16> { function, exchanged, element: Default::default() }),
        _ => Box::new(Run::<f32> { function, exchanged, element: Default::default() }),
    })
}

#[derive(Debug)]
struct Run<T> {
    function: Binary,
    exchanged: bool,
    element: std::marker::PhantomData<T>,
}

impl<T: Element + bytemuck::Pod> Thunk for Run<T> {
    fn kernel(&self) -> &str {
        "binary"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (first, second) = if self.exchanged { (1, 0) } else { (0, 1) };
        binary(call.cpu, self.function, call.read::<T>(first)?, call.read::<T>(second)?, call.write::<T>(0)?)
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
