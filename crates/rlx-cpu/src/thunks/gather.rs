//! `gather`: rows of a matrix that may be decoded, or bits along any axis.

use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::index::gather::Gather;
use rlx_ir::{DType, bail};

use super::rows::{build_rows, supports_rows};
use super::{StepCall, Thunk, around, axis_of};
use crate::backend::support::{Entry, all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::index::gather;
use crate::kernels::memory::indices;

/// `gather`.
pub(crate) static GATHER: Entry = Entry::new("gather", supports, build);

fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    if supports_rows(facts).is_yes() {
        return build_rows(facts);
    }
    match facts.op.downcast::<Gather>() {
        Some(op) => Ok(Box::new(Run { axis: axis_of(op.axis, &facts.operands[0].ty)? })),
        None => bail!(Bug, "{} is not gather", facts.op.name()),
    }
}

#[derive(Debug)]
struct Run {
    axis: usize,
}

impl Run {
    fn of<T: bytemuck::Pod + Send + Sync>(&self, call: &mut StepCall<'_>) -> Result<()> {
        let sizes = around(&call.shape(0), self.axis);
        // Of nothing, no row is out of range.
        let count = if sizes[0] == 0 { usize::MAX } else { sizes[1] };
        let rows = match call.step.operands[1].ty.dtype {
            DType::I32 => indices("gather", call.read::<i32>(1)?, count)?,
            DType::I64 => indices("gather", call.read::<i64>(1)?, count)?,
            DType::U32 => indices("gather", call.read::<u32>(1)?, count)?,
            other => bail!(Bug, "no indices of {other}"),
        };
        gather(call.cpu, sizes, call.read::<T>(0)?, &rows, call.write(0)?)
    }
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "gather"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.operands[0].ty.dtype;
        match dtype.block_bytes() {
            1 => self.of::<u8>(call),
            2 => self.of::<u16>(call),
            4 => self.of::<u32>(call),
            8 => self.of::<u64>(call),
            _ => bail!(Bug, "no gather of {dtype}"),
        }
    }
}
