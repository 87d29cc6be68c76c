//! `top_k`.

use rlx_compile::{OpFacts, Support};
use rlx_ir::bail;
use rlx_ir::ops::index::top_k::TopK;

use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::index::{Ordered, top_k};

/// `top_k`.
pub(crate) static TOP_K: Entry = Entry::new("top_k", supports, build);

fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    match facts.op.downcast::<TopK>() {
        Some(op) => Ok(Box::new(Run { k: op.k })),
        None => bail!(Bug, "{} is not top_k", facts.op.name()),
    }
}

#[derive(Debug)]
struct Run {
    k: usize,
}

impl Run {
    fn of<T: Ordered + bytemuck::Pod>(&self, call: &mut StepCall<'_>) -> Result<()> {
        let cols = call.shape(0).last().copied().unwrap_or(1);
        let (values, indices) = (call.write::<T>(0)?, call.write::<i32>(1)?);
        top_k(call.cpu, [cols, self.k], call.read::<T>(0)?, values, indices)
    }
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "top_k"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.operands[0].ty.dtype;
        with_number!(dtype, T => self.of::<T>(call), other => bail!(Bug, "no top_k of {other}"))
    }
}
