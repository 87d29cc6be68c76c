//! `select`.

use bytemuck::Pod;
use rlx_compile::Support;
use rlx_ir::bail;

use super::{StepCall, Thunk};
use crate::backend::support::Entry;
use crate::error::{Error, Result};
use crate::kernels::Strided;
use crate::kernels::elementwise::{Truth, select};

/// `select`.
pub(crate) static SELECT: Entry = Entry::new("select", |_| Support::Yes, |_| Ok(Box::new(Select)));

#[derive(Debug)]
struct Select;

impl Select {
    fn of<T: Pod + Send + Sync>(call: &mut StepCall<'_>) -> Result<()> {
        let shape = call.result_shape(0);
        let strides = [0, 1, 2].map(|i| call.broadcast_strides(i, shape.len()));
        let condition = Strided { data: call.read::<Truth>(0)?, strides: &strides[0] };
        let a = Strided { data: call.read::<T>(1)?, strides: &strides[1] };
        let b = Strided { data: call.read::<T>(2)?, strides: &strides[2] };
        select(call.cpu, &shape, condition, [a, b], call.write(0)?)
    }
}

impl Thunk for Select {
    fn kernel(&self) -> &str {
        "select"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.results[0].ty.dtype;
        match dtype.block_bytes() {
            1 => Self::of::<u8>(call),
            2 => Self::of::<u16>(call),
            4 => Self::of::<u32>(call),
            8 => Self::of::<u64>(call),
            _ => bail!(Bug, "no select of {dtype}"),
        }
    }
}
