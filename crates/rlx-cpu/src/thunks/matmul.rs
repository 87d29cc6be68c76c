//! `matmul`: with a weight through its packed panels, of two activations of one dtype through the dense kernel, and else
//! after a conversion.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::{DType, bail};

use super::linear::{build_matmul, supports_product};
use super::product::{self, Product};
use super::{StepCall, Thunk};
use crate::backend::support::{Entry, require};
use crate::error::{Error, Result};
use crate::kernels::matmul::{Element, Epilogue, Operand, dense};

/// `matmul`.
pub(crate) static MATMUL: Entry = Entry {
    op: "matmul",
    supports,
    build,
    packs: |facts, index| index == 1 && is_packed(facts),
    in_place: |_| None,
};

fn is_packed(facts: &OpFacts<'_>) -> bool {
    facts.op.downcast::<MatMul>().is_some_and(|m| m.transpose_b) && supports_product(facts).is_yes()
}

fn supports(facts: &OpFacts<'_>) -> Support {
    if is_packed(facts) || supports_dense(facts).is_yes() {
        return Support::Yes;
    }
    product::supports(facts)
}

fn supports_dense(facts: &OpFacts<'_>) -> Support {
    let (a, b) = (&facts.operands[0].ty, &facts.operands[1].ty);
    let outer = |t: &rlx_ir::Type| t.shape.dims()[..t.rank().saturating_sub(2)].to_vec();
    let batches = outer(a) == outer(b) || a.rank() == 2 || b.rank() == 2;
    // With strides, a stack of matrices has one stride only where it has one axis.
    let strided = facts.operands.iter().any(|o| o.strides.is_some());
    require(&[
        (
            a.dtype == b.dtype && matches!(a.dtype, DType::F32 | DType::F16 | DType::BF16),
            "two operands of f32, f16 or bf16",
        ),
        (batches, "equal leading dims, or none on one side"),
        (!strided || (a.rank() <= 3 && b.rank() <= 3), "strides on at most one leading dim"),
    ])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(&MatMul { transpose_b }) = facts.op.downcast::<MatMul>() else {
        bail!(Bug, "{} is not matmul", facts.op.name())
    };
    if is_packed(facts) {
        return build_matmul(facts);
    }
    if !supports_dense(facts).is_yes() {
        return Ok(Box::new(Product { transpose_b }));
    }
    Ok(match facts.operands[0].ty.dtype {
        DType::F32 => Box::new(Dense::<f32>::new(transpose_b)),
        DType::F16 => Box::new(Dense::<f16>::new(transpose_b)),
        DType::BF16 => Box::new(Dense::<bf16>::new(transpose_b)),
        other => bail!(Bug, "no dense product of {other}"),
    })
}

/// The product of two operands that change from run to run.
#[derive(Debug)]
struct Dense<T> {
    transpose_b: bool,
    element: std::marker::PhantomData<T>,
}

impl<T> Dense<T> {
    fn new(transpose_b: bool) -> Self {
        Self { transpose_b, element: std::marker::PhantomData }
    }
}

impl<T: Element + bytemuck::Pod> Thunk for Dense<T> {
    fn kernel(&self) -> &str {
        "dense"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let (a_shape, b_shape) = (call.shape(0), call.shape(1));
        let operand = |index: usize, shape: &[usize]| -> Result<Operand<'_, T>> {
            let strides = call.strides(index);
            let rank = shape.len();
            Ok(Operand {
                data: call.read::<T>(index)?,
                batch_stride: if rank > 2 { strides[rank - 3] } else { 0 },
                row_stride: strides[rank - 2],
                col_stride: strides[rank - 1],
            })
        };
        let a = operand(0, &a_shape)?;
        let mut b = operand(1, &b_shape)?;
        let (m, k) = (a_shape[a_shape.len() - 2], a_shape[a_shape.len() - 1]);
        let mut n = b_shape[b_shape.len() - 1];
        if self.transpose_b {
            n = b_shape[b_shape.len() - 2];
            std::mem::swap(&mut b.row_stride, &mut b.col_stride);
        }
        let out_shape = call.result_shape(0);
        let batch = out_shape[..out_shape.len() - 2].iter().product();
        dense(call.cpu, [batch, m, n, k], a, b, &Epilogue::default(), call.write::<T>(0)?)
    }
}
