//! Moving and pooling rows: `embedding`, `kv_write`, `pool`.

use half::{bf16, f16};
use rlx_compile::{OpFacts, OperandFacts, Support};
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::index::gather::Gather;
use rlx_ir::ops::pooling::pool::{Pool, PoolMode};
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk, token_stride};
use crate::backend::support::{Entry, all_dense, is_small_float, require, token_rows};
use crate::error::{Error, Result};
use crate::kernels::elementwise::{Scalar, cast};
use crate::kernels::matmul::Element;
use crate::kernels::memory::{Index, gather_block_rows, gather_rows, kv_write};
use crate::kernels::pooling::{Pooling, pool};
use crate::kernels::scratch::with_scratch;

/// The entries of this family.
pub(crate) static ENTRIES: &[Entry] = &[
    Entry::new("embedding", supports_rows, build_rows),
    Entry::new("kv_write", supports_kv_write, build_kv_write),
    Entry::new("pool", supports_pool, build_pool),
];

/// Whether the kernels take the rows of a table; also those of `gather`.
pub(super) fn supports_rows(facts: &OpFacts<'_>) -> Support {
    let scale = facts.op.downcast::<Embedding>().map_or(1.0, |e| e.scale);
    let axis = facts.op.downcast::<Gather>().map_or(0, |g| g.axis);
    let table = &facts.operands[0].ty;
    require(&[
        (axis == 0 && table.rank() == 2, "rows of a matrix"),
        (is_small_float(table.dtype) || table.dtype.is_block(), "an f32, f16, bf16 or block table"),
        (is_small_float(facts.results[0].dtype), "an f32, f16 or bf16 result"),
        (scale == 1.0 || facts.results[0].dtype == DType::F32, "f32 where it scales"),
        (all_dense(facts), "dense operands"),
    ])
}

pub(super) fn build_rows(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let scale = facts.op.downcast::<Embedding>().map_or(1.0, |e| e.scale) as f32;
    Ok(match facts.results[0].dtype {
        DType::F16 => Box::new(Rows::<f16> { scale, element: Default::default() }),
        DType::BF16 => Box::new(Rows::<bf16> { scale, element: Default::default() }),
        _ => Box::new(Rows::<f32> { scale, element: Default::default() }),
    })
}

#[derive(Debug)]
struct Rows<T> {
    scale: f32,
    element: std::marker::PhantomData<T>,
}

impl<T: Element + bytemuck::Pod> Rows<T> {
    fn by(call: &StepCall<'_>, ids: &[impl Index], out: &mut [T]) -> Result<()> {
        let (cpu, cols) = (call.cpu, call.shape(0).last().copied().unwrap_or(1));
        match call.step.operands[0].ty.dtype {
            DType::F32 => gather_rows::<f32, T>(cpu, cols, call.read(0)?, ids, out),
            DType::F16 => gather_rows::<f16, T>(cpu, cols, call.read(0)?, ids, out),
            DType::BF16 => gather_rows::<bf16, T>(cpu, cols, call.read(0)?, ids, out),
            DType::Block(block) => gather_block_rows(cpu, block, cols, call.bytes(0)?, ids, out),
            other => bail!(Bug, "no rows of {other}"),
        }
    }
}

impl<T: Element + bytemuck::Pod> Thunk for Rows<T> {
    fn kernel(&self) -> &str {
        "gather rows"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let out = call.write::<T>(0)?;
        match call.step.operands[1].ty.dtype {
            DType::I32 => Self::by(call, call.read::<i32>(1)?, out)?,
            DType::I64 => Self::by(call, call.read::<i64>(1)?, out)?,
            DType::U32 => Self::by(call, call.read::<u32>(1)?, out)?,
            other => bail!(Bug, "no indices of {other}"),
        }
        if self.scale != 1.0 {
            // Only f32 results scale.
            for value in bytemuck::cast_slice_mut::<T, f32>(out) {
                *value *= self.scale;
            }
        }
        Ok(())
    }
}

fn supports_kv_write(facts: &OpFacts<'_>) -> Support {
    let x = &facts.operands[1];
    require(&[
        (token_rows(x), "tokens without gaps inside"),
        (is_small_float(x.ty.dtype) || x.strides.is_none(), "dense tokens of f64"),
        (
            facts
                .operands
                .iter()
                .filter(|o| !std::ptr::eq(*o, x))
                .all(|o: &OperandFacts| o.strides.is_none()),
            "dense operands",
        ),
    ])
}

fn build_kv_write(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    fn of<X: Element + bytemuck::Pod>(state: DType) -> Box<dyn Thunk> {
        match state {
            DType::F16 => Box::new(KvWrite::<X, f16>(Default::default())),
            DType::BF16 => Box::new(KvWrite::<X, bf16>(Default::default())),
            _ => Box::new(KvWrite::<X, f32>(Default::default())),
        }
    }
    fn of_f64(state: DType) -> Box<dyn Thunk> {
        match state {
            DType::F16 => Box::new(KvWriteDouble::<f16>(Default::default())),
            DType::BF16 => Box::new(KvWriteDouble::<bf16>(Default::default())),
            _ => Box::new(KvWriteDouble::<f32>(Default::default())),
        }
    }
    let state = facts.operands[0].ty.dtype;
    Ok(match facts.operands[1].ty.dtype {
        DType::F16 => of::<f16>(state),
        DType::BF16 => of::<bf16>(state),
        DType::F64 => of_f64(state),
        _ => of::<f32>(state),
    })
}

#[derive(Debug)]
struct KvWrite<X, T>(std::marker::PhantomData<(X, T)>);

impl<X: Element + bytemuck::Pod, T: Element + bytemuck::Pod> Thunk for KvWrite<X, T> {
    fn kernel(&self) -> &str {
        "kv_write"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let shape = call.shape(1);
        let width = shape[1..].iter().product();
        let stride = token_stride(call, 1);
        kv_write(call.cpu, width, call.read::<i32>(2)?, (call.read::<X>(1)?, stride), call.write::<T>(0)?)
    }
}

/// Tokens of f64, which are rounded first.
#[derive(Debug)]
struct KvWriteDouble<T>(std::marker::PhantomData<T>);

impl<T: Element + Scalar + bytemuck::Pod> Thunk for KvWriteDouble<T> {
    fn kernel(&self) -> &str {
        "kv_write"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (x, slots, out) = (call.read::<f64>(1)?, call.read::<i32>(2)?, call.write::<T>(0)?);
        let width = call.shape(1)[1..].iter().product();
        with_scratch(x.len(), |rounded: &mut [T]| {
            cast(call.cpu, x, rounded)?;
            kv_write(call.cpu, width, slots, (rounded, width), out)
        })
    }
}

fn supports_pool(facts: &OpFacts<'_>) -> Support {
    require(&[
        (is_small_float(facts.results[0].dtype), "f32, f16 or bf16"),
        (facts.operands[0].ty.rank() == 2, "rows of a matrix"),
        (facts.operands[1].ty.dtype == DType::I32, "i32 starts"),
        (all_dense(facts), "dense operands"),
    ])
}

fn build_pool(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(op) = facts.op.downcast::<Pool>() else { bail!(Bug, "{} is not pool", facts.op.name()) };
    let mode = match op.mode {
        PoolMode::Mean => Pooling::Mean,
        PoolMode::Cls => Pooling::Cls,
        PoolMode::Last => Pooling::Last,
        PoolMode::Max => Pooling::Max,
    };
    Ok(match facts.results[0].dtype {
        DType::F16 => Box::new(PoolRows::<f16>(mode, Default::default())),
        DType::BF16 => Box::new(PoolRows::<bf16>(mode, Default::default())),
        _ => Box::new(PoolRows::<f32>(mode, Default::default())),
    })
}

#[derive(Debug)]
struct PoolRows<T>(Pooling, std::marker::PhantomData<T>);

impl<T: Element + bytemuck::Pod> Thunk for PoolRows<T> {
    fn kernel(&self) -> &str {
        "pool"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let cols = call.shape(0).last().copied().unwrap_or(1);
        pool(call.cpu, self.0, cols, call.read::<T>(0)?, call.read::<i32>(1)?, call.write::<T>(0)?)
    }
}
