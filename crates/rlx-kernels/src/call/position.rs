//! The call of `rope`.

use rlx_ir::DType;
use rlx_ir::ops::position::rope::{Rope, RopeStyle};

use super::{Call, FLOATS, Work, check_dense, check_dtype};
use crate::args::RopeArgs;
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::Layout;

pub(super) fn rope(op: &Rope, operands: &[Layout]) -> Result<Call> {
    let (x, positions, inv_freq) = (&operands[0], &operands[1], &operands[2]);
    check_dtype(0, x, FLOATS)?;
    check_dtype(1, positions, &[DType::I32])?;
    check_dense(1, positions)?;
    check_dense(2, inv_freq)?;
    let [tokens, heads, head_dim] = x.shape[..] else {
        rlx_ir::bail!(Bug, "rope of {x:?}");
    };
    if head_dim > 1 && x.strides[2] != 1 {
        rlx_ir::bail!(UnsupportedOnDevice, "elements of a head must be neighbours, but are {x:?}");
    }
    let pairs = inv_freq.shape[0];
    let units = tokens * heads * (head_dim - pairs);
    let args = RopeArgs {
        units: index(units)?,
        heads: index(heads)?,
        head_dim: index(head_dim)?,
        pairs: index(pairs)?,
        x_token: index(x.strides[0])?,
        x_head: index(x.strides[1])?,
        interleaved: (op.style == RopeStyle::Interleaved).into(),
        scale: op.scale as f32,
    };
    Call::new(&format!("rope_{}", x.dtype), &args, 3, Work::PerElement(units))
}
