//! `argmax`.

use half::{bf16, f16};
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
        match call.step.operands[0].ty.dtype {
            DType::F32 => self.of::<f32>(call),
            DType::F16 => self.of::<f16>(call),
            DType::BF16 => self.of::<bf16>(call),
            DType::F64 => self.of::<f64>(call),
            DType::I8 => self.of::<i8>(call),
            DType::I16 => self.of::<i16>(call),
            DType::I32 => self.of::<i32>(call),
            DType::I64 => self.of::<i64>(call),
            DType::U8 => self.of::<u8>(call),
            DType::U32 => self.of::<u32>(call),
            DType::Bool => self.of::<Truth>(call),
            other => bail!(Bug, "no argmax of {other}"),
        }
    }
}
