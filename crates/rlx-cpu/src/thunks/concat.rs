//! `concat`.

use rlx_compile::{OpFacts, Support};
use rlx_ir::bail;
use rlx_ir::ops::shape::concat::Concat;

use super::{StepCall, Thunk, axis_of};
use crate::backend::support::{Entry, all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::shape::concat;

/// `concat`.
pub(crate) static CONCAT: Entry = Entry::new("concat", supports, build);

fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(op) = facts.op.downcast::<Concat>() else { bail!(Bug, "{} is not concat", facts.op.name()) };
    Ok(Box::new(Run { axis: axis_of(op.axis, &facts.results[0])? }))
}

#[derive(Debug)]
struct Run {
    axis: usize,
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "concat"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let outer = call.result_shape(0)[..self.axis].iter().product();
        let operands = (0..call.reads.len()).map(|i| call.bytes(i)).collect::<Result<Vec<_>>>()?;
        concat(call.cpu, outer, &operands, call.write_bytes(0))
    }
}
