//! From a step to the launch of a kernel: what is decided when a plan is built, and what when sizes are bound.

use std::sync::Arc;

use rlx_ir::ops::activation::gelu::Gelu;
use rlx_ir::ops::activation::silu::Silu;
use rlx_ir::ops::elementwise::binary::Binary;
use rlx_ir::ops::elementwise::compare::Compare;
use rlx_ir::ops::elementwise::select::Select;
use rlx_ir::ops::elementwise::unary::Unary;
use rlx_ir::ops::fused::fused_region::FusedRegion;
use rlx_ir::ops::pooling::l2_normalize::L2Normalize;
use rlx_ir::ops::pooling::pool::Pool;
use rlx_ir::{Builder, DType, Op, OpRef};
use rlx_kernels::args::Args;
use rlx_kernels::call::{
    Bound, EmbeddingLayerNorm, Work, call, copy, embedding_layer_norm, pool_l2_normalize,
};
use rlx_kernels::layout::Layout;
use rlx_kernels::region;

use crate::driver::KernelRef;
use crate::error::Result;

/// How a step is done.
#[derive(Clone, Debug)]
pub(super) enum Recipe {
    /// By a kernel of the manifest that sizes choose.
    Op,
    /// By a kernel that was written for it.
    Region(KernelRef),
    /// By copying a view.
    Copy,
    /// Embeddings, their sum and its norm in one.
    EmbeddingBlock(EmbeddingLayerNorm),
    /// Pooling and normalisation in one.
    PoolNormalized(Pool, L2Normalize),
}

/// A launch but for buffers and threads.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub(super) kernel: KernelRef,
    pub(super) args: Vec<u8>,
    pub(super) bindings: Vec<Bound>,
    pub(super) work: Work,
}

impl Recipe {
    /// How `op` on operands of these dtypes is done.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where it takes a kernel of its own that cannot be written.
    pub(super) fn of(op: &dyn Op, operands: &[DType]) -> Result<Self> {
        if let Some(region) = op.downcast::<FusedRegion>() {
            return Self::region(region);
        }
        match elementwise(op) {
            Some(op) => Self::region(&alone(op, operands)?),
            None => Ok(Self::Op),
        }
    }

    fn region(op: &FusedRegion) -> Result<Self> {
        // The name follows from the text, so that equal regions are one kernel.
        let draft = region::kernel(op, "region")?;
        let text = draft.text.unwrap_or_default();
        let hash = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        Ok(Self::Region(KernelRef::Own(Arc::new(region::kernel(op, &format!("region_{hash:016x}"))?))))
    }

    /// The launch for operands and results of these layouts.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` with the reason.
    pub(super) fn prepare(
        &self,
        op: Option<&dyn Op>,
        operands: &[Layout],
        results: &[Layout],
    ) -> Result<Prepared> {
        match (self, op) {
            (Self::Op, Some(op)) => Ok(call(op, operands)?.into()),
            (Self::EmbeddingBlock(block), _) => Ok(embedding_layer_norm(block, operands)?.into()),
            (Self::PoolNormalized(pool, norm), _) => Ok(pool_l2_normalize(pool, norm, operands)?.into()),
            (Self::Op | Self::Copy, _) => Ok(copy(&operands[0], &results[0])?.into()),
            (Self::Region(kernel), _) => {
                let shape = results.first().map_or(&[][..], |r| &r.shape);
                let (args, work) = region::args(operands, shape)?;
                let bindings = (0..kernel.buffers.len())
                    .map(|at| at.checked_sub(operands.len()).map_or(Bound::Operand(at), Bound::Result));
                let bindings = bindings.collect();
                Ok(Prepared { kernel: kernel.clone(), args: args.bytes().to_vec(), bindings, work })
            }
        }
    }
}

impl From<rlx_kernels::call::Call> for Prepared {
    fn from(call: rlx_kernels::call::Call) -> Self {
        let kernel = KernelRef::Listed(call.kernel);
        Self { kernel, args: call.args, bindings: call.bindings, work: call.work }
    }
}

/// An op that works on each element by itself and has no kernel in the manifest.
fn elementwise(op: &dyn Op) -> Option<OpRef> {
    fn shared<T: Op + Clone>(op: &dyn Op) -> Option<OpRef> {
        op.downcast::<T>().map(|op| Arc::new(op.clone()) as OpRef)
    }
    shared::<Unary>(op)
        .or_else(|| shared::<Binary>(op))
        .or_else(|| shared::<Compare>(op))
        .or_else(|| shared::<Select>(op))
        .or_else(|| shared::<Gelu>(op))
        .or_else(|| shared::<Silu>(op))
}

/// A region of one op. A kernel's text does not depend on sizes, so scalars stand for all operands.
fn alone(op: OpRef, operands: &[DType]) -> Result<FusedRegion> {
    let mut b = Builder::new("alone");
    let mut inputs = Vec::with_capacity(operands.len());
    for (i, dtype) in operands.iter().enumerate() {
        inputs.push(b.input(&format!("x{i}"), *dtype, [0usize; 0])?);
    }
    let result = b.emit_one_ref(op, &inputs)?;
    Ok(FusedRegion { body: b.finish(&[result])? })
}
