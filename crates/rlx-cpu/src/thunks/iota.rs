//! `iota`.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::index::iota::Iota;
use rlx_ir::{DType, bail};

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
        match call.step.results[0].ty.dtype {
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
            other => bail!(Bug, "no iota of {other}"),
        }
    }
}
