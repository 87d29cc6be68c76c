//! Reductions along any axes.

use rlx_compile::{OpFacts, Support};
use rlx_ir::bail;
use rlx_ir::ops::reduce::reduce::{Reduce, ReduceKind};

use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::reduce::{Reducible, Reduction, reduce_axes};

/// The entries of this family.
pub(crate) static ENTRIES: &[Entry] = &{
    const fn entry(op: &'static str) -> Entry {
        Entry::new(op, supports, build)
    }
    [
        entry("reduce_sum"),
        entry("reduce_max"),
        entry("reduce_min"),
        entry("reduce_mean"),
        entry("reduce_prod"),
    ]
};

fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(op) = facts.op.downcast::<Reduce>() else { bail!(Bug, "no kernel for {}", facts.op.name()) };
    let reduction = match op.kind {
        ReduceKind::Sum => Reduction::Sum,
        ReduceKind::Max => Reduction::Max,
        ReduceKind::Min => Reduction::Min,
        ReduceKind::Mean => Reduction::Mean,
        ReduceKind::Prod => Reduction::Prod,
    };
    Ok(Box::new(Run { reduction, reduced: op.reduced(facts.operands[0].ty.rank())? }))
}

#[derive(Debug)]
struct Run {
    reduction: Reduction,
    reduced: Vec<bool>,
}

impl Run {
    fn of<T: Reducible>(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (x, out) = (call.read::<T>(0)?, call.write::<T>(0)?);
        reduce_axes(call.cpu, self.reduction, &call.shape(0), &self.reduced, x, out)
    }
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "reduce"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.operands[0].ty.dtype;
        with_number!(dtype, T => self.of::<T>(call), other => bail!(Bug, "no reduction of {other}"))
    }
}
