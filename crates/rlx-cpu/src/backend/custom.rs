//! Kernels of the user's own ops.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rlx_compile::{OpFacts, Support};
use rlx_ir::{DType, bail};

use super::launch::Read;
use crate::error::{Error, Result};
use crate::thunks::{StepCall, Thunk};

/// A kernel for ops that the user defines (or a replacement for a built-in one).
///
/// Registered with [`CpuBackend::register_kernel`](crate::CpuBackend::register_kernel). Operands and results are dense and
/// row-major.
///
/// Where it [supports](Self::supports) a use of a built-in op, that use stays as it is: no pass fuses it into another op.
pub trait CpuKernel: Debug + Send + Sync {
    /// The name of the op that it runs.
    fn op(&self) -> &str;

    /// Whether it runs this op on these operands.
    fn supports(&self, facts: &OpFacts<'_>) -> Support;

    /// Runs it. A panic becomes an error that names the op.
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

    /// How many operands there are.
    pub fn operand_count(&self) -> usize {
        self.operands.len()
    }

    /// The sizes of operand `index`.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such operand.
    pub fn shape(&self, index: usize) -> Result<&[usize]> {
        Ok(&self.get_operand(index)?.1)
    }

    /// The dtype of operand `index`.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such operand.
    pub fn dtype(&self, index: usize) -> Result<DType> {
        Ok(self.get_operand(index)?.0)
    }

    /// The elements of operand `index`, dense.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such operand, or its dtype is not of that size.
    pub fn operand<T: bytemuck::Pod>(&self, index: usize) -> Result<&'a [T]> {
        let (dtype, _, bytes) = self.get_operand(index)?;
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

    fn get_operand(&self, index: usize) -> Result<&(DType, Vec<usize>, &'a [u8])> {
        match self.operands.get(index) {
            Some(operand) => Ok(operand),
            None => bail!(InvalidArgument, "no operand {index}; there are {}", self.operands.len()),
        }
    }

    /// How many results there are.
    pub fn result_count(&self) -> usize {
        self.results.len()
    }

    /// The sizes of result `index`.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such result.
    pub fn result_shape(&self, index: usize) -> Result<&[usize]> {
        match self.results.get(index) {
            Some((_, shape, _)) => Ok(shape),
            None => bail!(InvalidArgument, "no result {index}; there are {}", self.results.len()),
        }
    }

    /// The elements of result `index`, dense.
    ///
    /// # Errors
    /// `InvalidArgument` where there is no such result, or its dtype is not of that size.
    pub fn result<T: bytemuck::Pod>(&mut self, index: usize) -> Result<&mut [T]> {
        let count = self.results.len();
        match self.results.get_mut(index) {
            Some((dtype, _, bytes)) => elements(index, *dtype, bytes),
            None => bail!(InvalidArgument, "no result {index}; there are {count}"),
        }
    }

    /// The elements of all results, dense, to be filled side by side.
    ///
    /// # Errors
    /// `InvalidArgument` where a result's dtype is not of that size.
    pub fn results<T: bytemuck::Pod>(&mut self) -> Result<Vec<&mut [T]>> {
        let results = self.results.iter_mut().enumerate();
        results.map(|(index, (dtype, _, bytes))| elements(index, *dtype, bytes)).collect()
    }
}

/// The bytes of result `index` as elements.
fn elements<T: bytemuck::Pod>(index: usize, dtype: DType, bytes: &mut [u8]) -> Result<&mut [T]> {
    check_size::<T>(dtype)?;
    // No bytes may lie anywhere.
    if bytes.is_empty() {
        return Ok(&mut []);
    }
    match bytemuck::try_cast_slice_mut(bytes) {
        Ok(values) => Ok(values),
        Err(e) => bail!(Bug, "result {index}: {e}"),
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
        // A written state keeps its memory: the kernel reads a copy.
        let in_place = call.reads.iter().any(|read| matches!(read, Read::InPlace));
        let before = if in_place { call.writes[0].to_vec() } else { Vec::new() };
        let mut operands = Vec::new();
        for index in 0..call.reads.len() {
            let bytes = match call.reads[index] {
                Read::InPlace => &before[..],
                _ => call.bytes(index)?,
            };
            operands.push((call.step.operands[index].ty.dtype, call.shape(index), bytes));
        }
        let mut results = Vec::new();
        for index in 0..call.writes.len() {
            let shape = call.result_shape(index);
            results.push((call.step.results[index].ty.dtype, shape, call.write_bytes(index)));
        }
        let mut call = KernelCall { op: &*self.op, operands, results };
        // The call is gone after a panic, and outputs are read only after a run that did not fail.
        match catch_unwind(AssertUnwindSafe(|| self.kernel.run(&mut call))) {
            Ok(done) => done,
            Err(panic) => {
                let what = panic.downcast_ref::<&str>().copied();
                let what = what.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                let what = what.unwrap_or("without a message");
                bail!(InvalidArgument, "the program's own kernel for {} panicked: {what}", self.op.name())
            }
        }
    }
}
