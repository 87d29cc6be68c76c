//! The call of `kv_write`.

use rlx_ir::DType;

use super::{Bound, Call, FLOATS, Work, check_dense, check_dtype};
use crate::args::{Args, KvWriteArgs};
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::Layout;
use crate::manifest::find;

/// The result is the state itself: slots that no token has keep what they hold.
pub(super) fn kv_write(operands: &[Layout]) -> Result<Call> {
    let [state, x, slots] = operands else {
        rlx_ir::bail!(Bug, "kv_write of {} operands", operands.len());
    };
    check_dtype(0, state, FLOATS)?;
    check_dtype(1, x, FLOATS)?;
    check_dtype(2, slots, &[DType::I32])?;
    check_dense(0, state)?;
    check_dense(2, slots)?;
    let [tokens, heads, head_dim] = x.shape[..] else {
        rlx_ir::bail!(Bug, "kv_write of {x:?}");
    };
    if head_dim > 1 && x.strides[2] != 1 {
        rlx_ir::bail!(UnsupportedOnDevice, "elements of a head must be neighbours, but are {x:?}");
    }
    // Offsets within the state have 64 bits.
    let args = KvWriteArgs {
        tokens: index(tokens)?,
        heads: index(heads)?,
        head_dim: index(head_dim)?,
        x_token: index(x.strides[0])?,
        x_head: index(x.strides[1])?,
        slots: index(state.shape[0] * state.shape[1])?,
    };
    Ok(Call {
        kernel: find(&format!("kv_write_{}_{}", x.dtype, state.dtype))?,
        args: args.bytes().to_vec(),
        bindings: vec![Bound::Operand(1), Bound::Operand(2), Bound::Result(0)],
        work: Work::PerRow { rows: tokens, width: heads * head_dim },
    })
}
