//! Changes of dtype: `cast`, `quantize`, `dequantize`.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::quant::BlockType;
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, is_small_float, require};
use crate::error::{Error, Result};
use crate::kernels::elementwise::{Scalar, Truth, cast, cast_floats};
use crate::kernels::matmul::Element;
use crate::kernels::memory::{dequantize, quantize};
use crate::kernels::scratch::with_scratch;

/// The entries of this family.
pub(crate) static ENTRIES: &[Entry] = &[
    Entry::new("cast", supports_cast, |_| Ok(Box::new(Cast))),
    Entry::new("quantize", supports_quantize, build_quantize),
    Entry::new("dequantize", supports_dequantize, build_dequantize),
];

fn supports_cast(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

#[derive(Debug)]
struct Cast;

impl Cast {
    fn floats<A: Element + bytemuck::Pod>(call: &mut StepCall<'_>) -> Result<()> {
        let x = call.read::<A>(0)?;
        match call.step.results[0].ty.dtype {
            DType::F16 => cast_floats::<A, f16>(call.cpu, x, call.write(0)?),
            DType::BF16 => cast_floats::<A, bf16>(call.cpu, x, call.write(0)?),
            _ => cast_floats::<A, f32>(call.cpu, x, call.write(0)?),
        }
    }

    fn from<A: Scalar + bytemuck::Pod>(call: &mut StepCall<'_>) -> Result<()> {
        let x = call.read::<A>(0)?;
        match call.step.results[0].ty.dtype {
            DType::F32 => cast::<A, f32>(call.cpu, x, call.write(0)?),
            DType::F16 => cast::<A, f16>(call.cpu, x, call.write(0)?),
            DType::BF16 => cast::<A, bf16>(call.cpu, x, call.write(0)?),
            DType::F64 => cast::<A, f64>(call.cpu, x, call.write(0)?),
            DType::I8 => cast::<A, i8>(call.cpu, x, call.write(0)?),
            DType::I16 => cast::<A, i16>(call.cpu, x, call.write(0)?),
            DType::I32 => cast::<A, i32>(call.cpu, x, call.write(0)?),
            DType::I64 => cast::<A, i64>(call.cpu, x, call.write(0)?),
            DType::U8 => cast::<A, u8>(call.cpu, x, call.write(0)?),
            DType::U32 => cast::<A, u32>(call.cpu, x, call.write(0)?),
            DType::Bool => cast::<A, Truth>(call.cpu, x, call.write(0)?),
            other => bail!(Bug, "no cast to {other}"),
        }
    }
}

impl Thunk for Cast {
    fn kernel(&self) -> &str {
        "cast"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (from, to) = (call.step.operands[0].ty.dtype, call.step.results[0].ty.dtype);
        match from {
            DType::F32 if is_small_float(to) => Self::floats::<f32>(call),
            DType::F16 if is_small_float(to) => Self::floats::<f16>(call),
            DType::BF16 if is_small_float(to) => Self::floats::<bf16>(call),
            DType::F32 => Self::from::<f32>(call),
            DType::F16 => Self::from::<f16>(call),
            DType::BF16 => Self::from::<bf16>(call),
            DType::F64 => Self::from::<f64>(call),
            DType::I8 => Self::from::<i8>(call),
            DType::I16 => Self::from::<i16>(call),
            DType::I32 => Self::from::<i32>(call),
            DType::I64 => Self::from::<i64>(call),
            DType::U8 => Self::from::<u8>(call),
            DType::U32 => Self::from::<u32>(call),
            DType::Bool => Self::from::<Truth>(call),
            other => bail!(Bug, "no cast of {other}"),
        }
    }
}

fn supports_quantize(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

fn build_quantize(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    Ok(match facts.operands[0].ty.dtype {
        DType::F16 => Box::new(Quantize::<f16>(Default::default())),
        DType::BF16 => Box::new(Quantize::<bf16>(Default::default())),
        DType::F64 => Box::new(QuantizeDouble),
        _ => Box::new(Quantize::<f32>(Default::default())),
    })
}

/// The block type that is read or written, and the length of a row.
fn blocks(call: &StepCall<'_>, dtype: DType) -> Result<(BlockType, usize)> {
    let DType::Block(block) = dtype else { bail!(Bug, "{dtype} is no block type") };
    Ok((block, call.shape(0).last().copied().unwrap_or(1)))
}

#[derive(Debug)]
struct Quantize<T>(std::marker::PhantomData<T>);

impl<T: Element + bytemuck::Pod> Thunk for Quantize<T> {
    fn kernel(&self) -> &str {
        "quantize"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (block, cols) = blocks(call, call.step.results[0].ty.dtype)?;
        quantize(call.cpu, block, cols, call.read::<T>(0)?, call.write_bytes(0))
    }
}

/// f64, rounded to f32 first.
#[derive(Debug)]
struct QuantizeDouble;

impl Thunk for QuantizeDouble {
    fn kernel(&self) -> &str {
        "quantize"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (block, cols) = blocks(call, call.step.results[0].ty.dtype)?;
        let (x, out) = (call.read::<f64>(0)?, call.write_bytes(0));
        with_scratch(x.len(), |rounded: &mut [f32]| {
            cast(call.cpu, x, rounded)?;
            quantize(call.cpu, block, cols, rounded, out)
        })
    }
}

fn supports_dequantize(facts: &OpFacts<'_>) -> Support {
    require(&[(all_dense(facts), "dense operands")])
}

fn build_dequantize(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    Ok(match facts.results[0].dtype {
        DType::F16 => Box::new(Dequantize::<f16>(Default::default())),
        DType::BF16 => Box::new(Dequantize::<bf16>(Default::default())),
        DType::F64 => Box::new(DequantizeDouble),
        _ => Box::new(Dequantize::<f32>(Default::default())),
    })
}

#[derive(Debug)]
struct Dequantize<T>(std::marker::PhantomData<T>);

impl<T: Element + bytemuck::Pod> Thunk for Dequantize<T> {
    fn kernel(&self) -> &str {
        "dequantize"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (block, cols) = blocks(call, call.step.operands[0].ty.dtype)?;
        dequantize(call.cpu, block, cols, call.bytes(0)?, call.write::<T>(0)?)
    }
}

/// To f64, which holds what is decoded.
#[derive(Debug)]
struct DequantizeDouble;

impl Thunk for DequantizeDouble {
    fn kernel(&self) -> &str {
        "dequantize"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (block, cols) = blocks(call, call.step.operands[0].ty.dtype)?;
        let (x, out) = (call.bytes(0)?, call.write::<f64>(0)?);
        with_scratch(out.len(), |decoded: &mut [f32]| {
            dequantize(call.cpu, block, cols, x, decoded)?;
            cast(call.cpu, decoded, out)
        })
    }
}
