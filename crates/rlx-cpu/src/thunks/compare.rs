//! Comparisons of two elements.

use bytemuck::Pod;
use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::elementwise::compare::{Compare, CompareKind};
use rlx_ir::{DType, bail};

use super::binary::broadcast;
use super::{StepCall, Thunk};
use crate::backend::support::Entry;
use crate::error::{Error, Result};
use crate::kernels::Strided;
use crate::kernels::elementwise::{Comparison, Truth, compare, compare_floats};
use crate::kernels::matmul::Element;

/// The entries of the comparisons.
pub(crate) static ENTRIES: &[Entry] = &{
    const fn entry(op: &'static str) -> Entry {
        Entry::new(op, |_| Support::Yes, build)
    }
    [entry("eq"), entry("ne"), entry("lt"), entry("le"), entry("gt"), entry("ge")]
};

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(op) = facts.op.downcast::<Compare>() else { bail!(Bug, "{} is no comparison", facts.op.name()) };
    Ok(Box::new(Run(comparison(op.kind))))
}

/// The kernel's name of a comparison.
pub(super) fn comparison(kind: CompareKind) -> Comparison {
    match kind {
        CompareKind::Eq => Comparison::Eq,
        CompareKind::Ne => Comparison::Ne,
        CompareKind::Lt => Comparison::Lt,
        CompareKind::Le => Comparison::Le,
        CompareKind::Gt => Comparison::Gt,
        CompareKind::Ge => Comparison::Ge,
    }
}

#[derive(Debug)]
struct Run(Comparison);

impl Run {
    fn of<T: PartialOrd + Pod + Send + Sync>(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (a, b, out) = (call.read::<T>(0)?, call.read::<T>(1)?, call.write(0)?);
        broadcast(call, |shape, [of_a, of_b]| {
            let operands = [Strided { data: a, strides: of_a }, Strided { data: b, strides: of_b }];
            compare(call.cpu, self.0, shape, operands, out)
        })
    }

    fn floats<T: Element + Pod>(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (a, b, out) = (call.read::<T>(0)?, call.read::<T>(1)?, call.write(0)?);
        broadcast(call, |shape, [of_a, of_b]| {
            let operands = [Strided { data: a, strides: of_a }, Strided { data: b, strides: of_b }];
            compare_floats(call.cpu, self.0, shape, operands, out)
        })
    }
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "compare"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        match call.step.operands[0].ty.dtype {
            DType::F32 => self.of::<f32>(call),
            DType::F16 => self.floats::<f16>(call),
            DType::BF16 => self.floats::<bf16>(call),
            DType::F64 => self.of::<f64>(call),
            DType::I8 => self.of::<i8>(call),
            DType::I16 => self.of::<i16>(call),
            DType::I32 => self.of::<i32>(call),
            DType::I64 => self.of::<i64>(call),
            DType::U8 => self.of::<u8>(call),
            DType::U32 => self.of::<u32>(call),
            DType::Bool => self.of::<Truth>(call),
            other => bail!(Bug, "no comparison of {other}"),
        }
    }
}
