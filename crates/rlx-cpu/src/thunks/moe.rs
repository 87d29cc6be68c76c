//! `moe`: experts whose matrices are packed one after the other.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Role, Support};
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::moe::moe::Moe;
use rlx_ir::{DType, bail};

use super::linear::{epilogue_activation, packs};
use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, is_small_float, require};
use crate::error::{Error, Result};
use crate::kernels::elementwise::Unary;
use crate::kernels::matmul::Element;
use crate::kernels::moe::{Experts, GateFunction, moe};

/// The operands that are packed: gate, up and down.
const MATRICES: std::ops::Range<usize> = 3..6;

/// `moe`.
pub(crate) static MOE: Entry =
    Entry { packs: |_, index| MATRICES.contains(&index), ..Entry::new("moe", supports, build) };

fn function(activation: Activation) -> Option<GateFunction> {
    match activation {
        Activation::Tanh => Some(GateFunction::After(Unary::Tanh)),
        Activation::Sigmoid => Some(GateFunction::After(Unary::Sigmoid)),
        other => epilogue_activation(other).map(GateFunction::Epilogue),
    }
}

fn supports(facts: &OpFacts<'_>) -> Support {
    let Some(op) = facts.op.downcast::<Moe>() else { return Support::No("another op".to_owned()) };
    let matrices = &facts.operands[MATRICES];
    require(&[
        (function(op.activation).is_some(), "an activation that it has"),
        (
            is_small_float(facts.operands[0].ty.dtype) && is_small_float(facts.operands[1].ty.dtype),
            "f32, f16 or bf16 tokens and weights of choices",
        ),
        (matrices.iter().all(|m| m.role == Role::Weight), "weights as experts"),
        (matrices.iter().all(|m| packs(m.ty.dtype)), "experts of a dtype that it can pack"),
        (all_dense(facts), "dense operands"),
    ])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(function) = facts.op.downcast::<Moe>().and_then(|m| function(m.activation)) else {
        bail!(Bug, "no kernel for {}", facts.op.name())
    };
    Ok(match facts.operands[0].ty.dtype {
        DType::F16 => Box::new(Run::<f16>(function, Default::default())),
        DType::BF16 => Box::new(Run::<bf16>(function, Default::default())),
        _ => Box::new(Run::<f32>(function, Default::default())),
    })
}

#[derive(Debug)]
struct Run<T>(GateFunction, std::marker::PhantomData<T>);

impl<T: Element + bytemuck::Pod> Thunk for Run<T> {
    fn kernel(&self) -> &str {
        "packed experts"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let experts = Experts {
            function: self.0,
            gate: call.packed_stack(3)?,
            up: call.packed_stack(4)?,
            down: call.packed_stack(5)?,
        };
        let wide;
        let weights = match call.step.operands[1].ty.dtype {
            DType::F16 => {
                wide = call.read::<f16>(1)?.iter().map(|w| w.to_f32()).collect::<Vec<_>>();
                &wide[..]
            }
            DType::BF16 => {
                wide = call.read::<bf16>(1)?.iter().map(|w| w.to_f32()).collect::<Vec<_>>();
                &wide[..]
            }
            _ => call.read::<f32>(1)?,
        };
        moe(call.cpu, &experts, call.read::<T>(0)?, weights, call.read::<i32>(2)?, call.write::<T>(0)?)
    }
}
