//! Reductions over neighbouring axes, and `argmax` of the last axis.

use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::index::argmax::ArgMax;
use rlx_ir::ops::reduce::reduce::{Reduce, ReduceKind};
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::reduce::{Reduction, argmax, reduce};

/// The entries of this family.
pub(crate) static ENTRIES: &[Entry] = &[
    Entry::new("reduce_sum", supports, build),
    Entry::new("reduce_max", supports, build),
    Entry::new("reduce_min", supports, build),
    Entry::new("reduce_mean", supports, build),
    Entry::new("reduce_prod", supports, build),
    Entry::new("argmax", supports_argmax, |_| Ok(Box::new(RunArgMax))),
];

/// The reduced axes as one range.
fn range(facts: &OpFacts<'_>) -> Option<std::ops::Range<usize>> {
    let reduced = facts.op.downcast::<Reduce>()?.reduced(facts.operands[0].ty.rank()).ok()?;
    let first = reduced.iter().position(|r| *r)?;
    let len = reduced.iter().filter(|r| **r).count();
    reduced[first..].iter().take(len).all(|r| *r).then_some(first..first + len)
}

fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[
        (facts.operands[0].ty.dtype == DType::F32, "f32"),
        (range(facts).is_some(), "neighbouring axes"),
        (all_dense(facts), "dense operands"),
    ])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let (Some(op), Some(axes)) = (facts.op.downcast::<Reduce>(), range(facts)) else {
        bail!(Bug, "no kernel for {}", facts.op.name())
    };
    let reduction = match op.kind {
        ReduceKind::Sum => Reduction::Sum,
        ReduceKind::Max => Reduction::Max,
        ReduceKind::Min => Reduction::Min,
        ReduceKind::Mean => Reduction::Mean,
        ReduceKind::Prod => Reduction::Prod,
    };
    Ok(Box::new(Run { reduction, axes }))
}

#[derive(Debug)]
struct Run {
    reduction: Reduction,
    axes: std::ops::Range<usize>,
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "reduce"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let shape = call.shape(0);
        let product = |s: &[usize]| s.iter().product();
        let sizes = [
            product(&shape[..self.axes.start]),
            product(&shape[self.axes.clone()]),
            product(&shape[self.axes.end..]),
        ];
        reduce(call.cpu, self.reduction, sizes, call.read::<f32>(0)?, call.write::<f32>(0)?)
    }
}

fn supports_argmax(facts: &OpFacts<'_>) -> Support {
    let rank = i64::try_from(facts.operands[0].ty.rank()).unwrap_or(0);
    let axis = facts.op.downcast::<ArgMax>().map(|a| a.axis);
    require(&[
        (facts.operands[0].ty.dtype == DType::F32, "f32"),
        (axis == Some(-1) || axis == Some(rank - 1), "the last axis"),
        (all_dense(facts), "dense operands"),
    ])
}

#[derive(Debug)]
struct RunArgMax;

impl Thunk for RunArgMax {
    fn kernel(&self) -> &str {
        "argmax"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let cols = call.shape(0).last().copied().unwrap_or(1);
        argmax(call.cpu, cols, call.read::<f32>(0)?, call.write::<i32>(0)?)
    }
}
