//! `pad`.

use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::shape::pad::Pad;
use rlx_ir::{Tensor, TensorType, bail};

use super::{StepCall, Thunk};
use crate::backend::support::Entry;
use crate::error::{Error, Result};
use crate::kernels::Strided;
use crate::kernels::shape::pad;

/// `pad`.
pub(crate) static PAD: Entry = Entry::new("pad", |_| Support::Yes, build);

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(op) = facts.op.downcast::<Pad>() else { bail!(Bug, "{} is not pad", facts.op.name()) };
    let value = Tensor::from_f64(TensorType::new(facts.results[0].dtype, []), &[op.value])?;
    Ok(Box::new(Run { op: op.clone(), value }))
}

/// The amounts, and the value in the result's dtype.
#[derive(Debug)]
struct Run {
    op: Pad,
    value: Tensor,
}

impl Run {
    fn of<T: bytemuck::Pod + Send + Sync>(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (low, high) = (self.op.low.eval(call.bindings)?, self.op.high.eval(call.bindings)?);
        let (shape, strides) = (call.shape(0), call.strides(0));
        let x = Strided { data: call.read::<T>(0)?, strides: &strides };
        let value = bytemuck::pod_read_unaligned(self.value.bytes());
        pad(call.cpu, &shape, x, [&low, &high], value, call.write(0)?)
    }
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "pad"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.operands[0].ty.dtype;
        match dtype.block_bytes() {
            1 => self.of::<u8>(call),
            2 => self.of::<u16>(call),
            4 => self.of::<u32>(call),
            8 => self.of::<u64>(call),
            _ => bail!(Bug, "no pad of {dtype}"),
        }
    }
}
