//! Any op through its reference evaluation: what runs a user's op that has no kernel. Slow, and right by definition.
//!
//! No built-in op ends here: `tests/reference.rs` lists what would.

use rlx_ir::op::{EvalContext, evaluate};
use rlx_ir::{OpRef, Tensor, TensorType, bail};

use super::{StepCall, Thunk};
use crate::backend::launch::Read;
use crate::error::{Error, Result};

/// The reference evaluation of an op.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) op: OpRef,
}

impl Thunk for Reference {
    fn kernel(&self) -> &str {
        "reference"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let mut tensors = Vec::with_capacity(call.reads.len());
        for index in 0..call.reads.len() {
            let ty = TensorType::new(call.step.operands[index].ty.dtype, call.shape(index));
            // A written state keeps its memory: the reference reads a copy.
            let bytes = match call.reads[index] {
                Read::InPlace => call.writes[0].to_vec(),
                _ => call.bytes(index)?.to_vec(),
            };
            tensors.push(Tensor::from_bytes(ty, bytes)?);
        }
        let operands: Vec<&Tensor> = tensors.iter().collect();
        let results: Vec<TensorType> = (0..call.writes.len())
            .map(|i| TensorType::new(call.step.results[i].ty.dtype, call.result_shape(i)))
            .collect();
        let cx = EvalContext { operands: &operands, results: &results, bindings: call.bindings };
        for (index, out) in evaluate(&*self.op, &cx)?.iter().enumerate() {
            let memory = call.write_bytes(index);
            if memory.len() != out.tensor.bytes().len() {
                bail!(Bug, "{} into {} bytes", out.tensor.ty(), memory.len());
            }
            memory.copy_from_slice(out.tensor.bytes());
        }
        Ok(())
    }
}
