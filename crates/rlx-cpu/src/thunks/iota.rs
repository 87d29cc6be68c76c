//! `iota`.

use rlx_compile::{OpFacts, Support};
use rlx_ir::bail;
use rlx_ir::ops::index::iota::Iota;

use super::{StepCall, Thunk, around, axis_of};
use crate::backend::support::Entry;
use crate::error::{Error, Result};
use crate::kernels::elementwise::Scalar;
use crate::kernels::index::iota;

/// `iota`.
pub(crate) static IOTA: Entry = Entry::new("iota", |_| Support::Yes, build);

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    match facts.op.downcast::<Iota>() {
        Some(op) => Ok(Box::new(Run { axis: axis_of(op.axis, &facts.results[0])? })),
        None => bail!(Bug, "{} is not iota", facts.op.name()),
    }
}

#[derive(Debug)]
struct Run {
    axis: usize,
}

impl Run {
    fn of<T: Scalar + bytemuck::Pod>(&self, call: &mut StepCall<'_>) -> Result<()> {
        iota::<T>(call.cpu, around(&call.result_shape(0), self.axis), call.write(0)?)
    }
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "iota"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.results[0].ty.dtype;
        with_number!(dtype, T => self.of::<T>(call), other => bail!(Bug, "no iota of {other}"))
    }
}
