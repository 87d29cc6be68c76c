//! `matmul` of what no tuned kernel takes: two dtypes, f64, blocks that are no weights, leading dims that broadcast. Both
//! operands become f32, or f64 where the result is, and then matrices are multiplied one by one.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk};
use crate::backend::support::{all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::elementwise::{cast, cast_floats};
use crate::kernels::matmul::{Element, Epilogue, Operand, Right, dense, double};
use crate::kernels::memory::dequantize;
use crate::kernels::scratch::with_scratch;

/// What this takes.
pub(super) fn supports(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

/// The product of any two operands.
#[derive(Debug)]
pub(super) struct Product {
    pub(super) transpose_b: bool,
}

/// The sizes of a product, and for each matrix of the result those of the operands that it is of.
struct Sizes {
    m: usize,
    n: usize,
    k: usize,
    batch: Vec<[usize; 2]>,
}

impl Sizes {
    fn of(call: &StepCall<'_>, transpose_b: bool) -> Self {
        let (a, b, out) = (call.shape(0), call.shape(1), call.result_shape(0));
        let lead = out.len() - 2;
        let (m, k, n) = (a[a.len() - 2], a[a.len() - 1], out[lead + 1]);
        debug_assert_eq!(n, b[b.len() - if transpose_b { 2 } else { 1 }]);
        // The matrix of `shape` that is broadcast to number `index` of the result.
        let place = |shape: &[usize], mut index: usize| {
            let (mut at, mut stride) = (0, 1);
            let own = &shape[..shape.len() - 2];
            for (axis, &size) in out[..lead].iter().enumerate().rev() {
                let Some(&have) = (axis + own.len()).checked_sub(lead).map(|i| &own[i]) else { break };
                at += if have == 1 { 0 } else { index % size * stride };
                stride *= have;
                index /= size;
            }
            at
        };
        let batch = (0..out[..lead].iter().product()).map(|i| [place(&a, i), place(&b, i)]).collect();
        Self { m, n, k, batch }
    }

    fn narrow<Y: Element>(
        &self,
        cpu: Cpu<'_>,
        transpose_b: bool,
        [a, b]: [&[f32]; 2],
        out: &mut [Y],
    ) -> Result<()> {
        let Self { m, n, k, .. } = *self;
        let strides = if transpose_b { [1, k] } else { [n, 1] };
        for (i, [of_a, of_b]) in self.batch.iter().enumerate() {
            let a = Operand { data: &a[of_a * m * k..], batch_stride: 0, row_stride: k, col_stride: 1 };
            let [row_stride, col_stride] = strides;
            let b = Operand { data: &b[of_b * k * n..], batch_stride: 0, row_stride, col_stride };
            dense(cpu, [1, m, n, k], a, b, &Epilogue::default(), &mut out[i * m * n..][..m * n])?;
        }
        Ok(())
    }

    fn wide(&self, cpu: Cpu<'_>, right: Right, [a, b]: [&[f64]; 2], out: &mut [f64]) -> Result<()> {
        let Self { m, n, k, .. } = *self;
        for (i, [of_a, of_b]) in self.batch.iter().enumerate() {
            let (a, b) = (&a[of_a * m * k..][..m * k], &b[of_b * k * n..][..k * n]);
            double(cpu, [m, n, k], a, (b, right), &mut out[i * m * n..][..m * n])?;
        }
        Ok(())
    }
}

/// Calls `run` with the elements of operand `index` in f32.
fn in_f32<R>(call: &StepCall<'_>, index: usize, run: impl FnOnce(&[f32]) -> Result<R>) -> Result<R> {
    let (cpu, shape, dtype) = (call.cpu, call.shape(index), call.step.operands[index].ty.dtype);
    if dtype == DType::F32 {
        return run(call.read(index)?);
    }
    with_scratch(shape.iter().product(), |wide: &mut [f32]| {
        match dtype {
            DType::F16 => cast_floats::<f16, f32>(cpu, call.read(index)?, wide)?,
            DType::BF16 => cast_floats::<bf16, f32>(cpu, call.read(index)?, wide)?,
            DType::F64 => cast::<f64, f32>(cpu, call.read(index)?, wide)?,
            DType::Block(block) => {
                dequantize(cpu, block, shape.last().copied().unwrap_or(1), call.bytes(index)?, wide)?;
            }
            other => bail!(Bug, "no product of {other}"),
        }
        run(wide)
    })
}

/// Calls `run` with the elements of operand `index` in f64.
fn in_f64<R>(call: &StepCall<'_>, index: usize, run: impl FnOnce(&[f64]) -> Result<R>) -> Result<R> {
    if call.step.operands[index].ty.dtype == DType::F64 {
        return run(call.read(index)?);
    }
    in_f32(call, index, |narrow| {
        with_scratch(narrow.len(), |wide: &mut [f64]| {
            cast(call.cpu, narrow, wide)?;
            run(wide)
        })
    })
}

impl Product {
    fn narrow<Y: Element + bytemuck::Pod>(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (cpu, sizes, out) = (call.cpu, Sizes::of(call, self.transpose_b), call.write::<Y>(0)?);
        in_f32(call, 0, |a| in_f32(call, 1, |b| sizes.narrow(cpu, self.transpose_b, [a, b], out)))
    }

    fn wide(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (cpu, sizes, out) = (call.cpu, Sizes::of(call, self.transpose_b), call.write::<f64>(0)?);
        let right = if self.transpose_b { Right::Transposed } else { Right::Plain };
        in_f64(call, 0, |a| in_f64(call, 1, |b| sizes.wide(cpu, right, [a, b], out)))
    }
}

impl Thunk for Product {
    fn kernel(&self) -> &str {
        "product"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        match call.step.results[0].ty.dtype {
            DType::F64 => self.wide(call),
            DType::F16 => self.narrow::<f16>(call),
            DType::BF16 => self.narrow::<bf16>(call),
            _ => self.narrow::<f32>(call),
        }
    }
}
