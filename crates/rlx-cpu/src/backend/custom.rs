//! Kernels of the user's own ops.

use std::fmt::Debug;

use rlx_compile::{OpFacts, Support};
use rlx_ir::{DType, bail};

use crate::error::{Error, Result};
use crate::thunks::{StepCall, Thunk};

/// A kernel for ops that the user defines (or a replacement for a built-in one).
///
/// Registered with [`CpuBackend::register_kernel`](crate::CpuBackend::register_kernel). Operands and results are dense and
/// row-major.
pub trait CpuKernel: Debug + Send + Sync {
    /// The name of the op that it runs.
    fn op(&self) -> &str;

    /// Whether it runs this op on these operands.
    fn supports(&self, facts: &OpFacts<'_>) -> Support;

    /// Runs it.
    ///
    /// # Errors
    /// What the kernel reports.
    fn run(&self, call: &mut KernelCall<'_>) -> Result<()>;
}

/// Operands and results of one call of a [`CpuKernel`].
#[derive(Debug)]
pub struct KernelCall<'a> {
    op: &'a dyn rlx_ir::Op,
    operands: Vec<(DType, Vec<usize>, &'a [u8])>,
    results: Vec<(DType, Vec<usize>, &'a mut [u8])>,
}

impl<'a> KernelCall<'a> {
    /// The op with its attributes.
    pub fn op(&self) -> &'a dyn rlx_ir::Op {
        self.op
    }

    /// The sizes of operand `index`.
    pub fn shape(&self, index: usize) -> &[usize] {
        &self.operands[index].1
    }

    /// The dtype of operand `index`.
    pub fn dtype(&self, index: usize) -> DType {
        self.operands[index].0
    }

    /// The elements of operand `index`, dense.
    ///
    /// # Errors
    /// `InvalidArgument` where its dtype is not of that size.
    pub fn operand<T: bytemuck::Pod>(&self, index: usize) -> Result<&'a [T]> {
        let (dtype, _, bytes) = &self.operands[index];
        check_size::<T>(*dtype)?;
        // No bytes may lie anywhere.
        if bytes.is_empty() {
            return Ok(&[]);
        }
        match bytemuck::try_cast_slice(bytes) {
            Ok(values) => Ok(values),
            Err(e) => bail!(Bug, "operand {index}: {e}"),
        }
    }

    /// The sizes of result `index`.
    pub fn result_shape(&self, index: usize) -> &[usize] {
        &self.results[index].1
    }

    /// The elements of result `index`, dense.
    ///
    /// # Errors
    /// `InvalidArgument` where its dtype is not of that size.
    pub fn result<T: bytemuck::Pod>(&mut self, index: usize) -> Result<&mut [T]> {
        let (dtype, _, bytes) = &mut self.results[index];
        check_size::<T>(*dtype)?;
        if bytes.is_empty() {
            return Ok(&mut []);
        }
        match bytemuck::try_cast_slice_mut(bytes) {
            Ok(values) => Ok(values),
            Err(e) => bail!(Bug, "result {index}: {e}"),
        }
    }
}

fn check_size<T>(dtype: DType) -> Result<()> {
    if size_of::<T>() != dtype.block_bytes() {
        bail!(InvalidArgument, "{dtype} has {} bytes, not {}", dtype.block_bytes(), size_of::<T>());
    }
    Ok(())
}

/// The thunk around a user's kernel.
#[derive(Debug)]
pub(crate) struct Custom {
    pub(crate) kernel: std::sync::Arc<dyn CpuKernel>,
    pub(crate) op: rlx_ir::OpRef,
}

impl Thunk for Custom {
    fn kernel(&self) -> &str {
        "custom"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let mut operands = Vec::new();
        for index in 0..call.reads.len() {
            operands.push((call.step.operands[index].ty.dtype, call.shape(index), call.bytes(index)?));
        }
        let mut results = Vec::new();
        for index in 0..call.writes.len() {
            let shape = call.result_shape(index);
            results.push((call.step.results[index].ty.dtype, shape, call.write_bytes(index)));
        }
        self.kernel.run(&mut KernelCall { op: &*self.op, operands, results })
    }
}
