//! `top_k`.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::index::top_k::TopK;
use rlx_ir::{DType, bail};

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
            other => bail!(Bug, "no top_k of {other}"),
        }
    }
}
