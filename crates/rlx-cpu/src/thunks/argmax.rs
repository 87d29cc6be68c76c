//! `argmax`.

use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::index::argmax::ArgMax;
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk, around, axis_of};
use crate::backend::support::{Entry, all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::elementwise::Truth;
use crate::kernels::index::{Ordered, argmax};

/// `argmax`.
pub(crate) static ARGMAX: Entry = Entry::new("argmax", supports, build);

fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    match facts.op.downcast::<ArgMax>() {
        Some(op) => Ok(Box::new(Run { axis: axis_of(op.axis, &facts.operands[0].ty)? })),
        None => bail!(Bug, "{} is not argmax", facts.op.name()),
    }
}

#[derive(Debug)]
struct Run {
    axis: usize,
}

impl Run {
    fn of<T: Ordered + bytemuck::Pod>(&self, call: &mut StepCall<'_>) -> Result<()> {
        argmax(call.cpu, around(&call.shape(0), self.axis), call.read::<T>(0)?, call.write(0)?)
    }
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "argmax"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.operands[0].ty.dtype;
        if dtype == DType::Bool {
            return self.of::<Truth>(call);
        }
        with_number!(dtype, T => self.of::<T>(call), other => bail!(Bug, "no argmax of {other}"))
    }
}
