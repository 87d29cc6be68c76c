//! Copies of strided views into dense buffers.

use rlx_ir::bail;

use super::{StepCall, Thunk};
use crate::error::{Error, Result};
use crate::kernels::memory::copy_strided;

/// Copies elements of any size.
#[derive(Debug)]
pub(crate) struct Copy;

impl Copy {
    fn of<T: bytemuck::Pod + Send + Sync>(call: &mut StepCall<'_>) -> Result<()> {
        let (shape, strides) = (call.shape(0), call.strides(0));
        copy_strided(call.cpu, &shape, call.read::<T>(0)?, &strides, call.write::<T>(0)?)
    }
}

impl Thunk for Copy {
    fn kernel(&self) -> &str {
        "copy"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.operands[0].ty.dtype;
        match dtype.block_bytes() {
            1 => Self::of::<u8>(call),
            2 => Self::of::<u16>(call),
            4 => Self::of::<u32>(call),
            8 => Self::of::<u64>(call),
            // Blocks have no views: see the plan.
            _ => bail!(Bug, "no copy of {dtype}"),
        }
    }
}
