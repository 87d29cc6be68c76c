//! `scatter`.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::index::scatter::{Scatter, ScatterMode};
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk, around, axis_of};
use crate::backend::support::{Entry, all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::index::{Rows, Summed, scatter_add, scatter_set};

/// `scatter`.
pub(crate) static SCATTER: Entry = Entry::new("scatter", supports, build);

fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(op) = facts.op.downcast::<Scatter>() else { bail!(Bug, "{} is not scatter", facts.op.name()) };
    Ok(Box::new(Run { axis: axis_of(op.axis, &facts.operands[0].ty)?, mode: op.mode }))
}

#[derive(Debug)]
struct Run {
    axis: usize,
    mode: ScatterMode,
}

impl Run {
    fn set<T: bytemuck::Pod + Send + Sync>(call: &mut StepCall<'_>, rows: Rows<'_>) -> Result<()> {
        scatter_set(call.cpu, rows, call.read::<T>(0)?, call.read::<T>(2)?, call.write::<T>(0)?)
    }

    fn add<T: bytemuck::Pod + Summed>(call: &mut StepCall<'_>, rows: Rows<'_>) -> Result<()> {
        scatter_add(call.cpu, rows, call.read::<T>(0)?, call.read::<T>(2)?, call.write::<T>(0)?)
    }
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "scatter"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let indices: Vec<i64> = match call.step.operands[1].ty.dtype {
            DType::I32 => call.read::<i32>(1)?.iter().map(|&i| i.into()).collect(),
            DType::U32 => call.read::<u32>(1)?.iter().map(|&i| i.into()).collect(),
            _ => call.read::<i64>(1)?.to_vec(),
        };
        let shape = call.shape(0);
        let [outer, size, inner] = around(&shape, self.axis);
        let rows = Rows { outer, size, inner, indices: &indices };
        let dtype = call.step.operands[0].ty.dtype;
        match (self.mode, dtype) {
            (ScatterMode::Set, _) => match dtype.block_bytes() {
                1 => Self::set::<u8>(call, rows),
                2 => Self::set::<u16>(call, rows),
                4 => Self::set::<u32>(call, rows),
                8 => Self::set::<u64>(call, rows),
                _ => bail!(Bug, "no scatter of {dtype}"),
            },
            (_, DType::F32) => Self::add::<f32>(call, rows),
            (_, DType::F16) => Self::add::<f16>(call, rows),
            (_, DType::BF16) => Self::add::<bf16>(call, rows),
            (_, DType::F64) => Self::add::<f64>(call, rows),
            (_, DType::I8) => Self::add::<i8>(call, rows),
            (_, DType::I16) => Self::add::<i16>(call, rows),
            (_, DType::I32) => Self::add::<i32>(call, rows),
            (_, DType::I64) => Self::add::<i64>(call, rows),
            (_, DType::U8) => Self::add::<u8>(call, rows),
            (_, DType::U32) => Self::add::<u32>(call, rows),
            _ => bail!(Bug, "no sum of {dtype}"),
        }
    }
}
