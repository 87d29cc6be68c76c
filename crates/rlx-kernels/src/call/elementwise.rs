//! Calls of single elementwise ops that are compiled ahead; all others are regions.

use rlx_ir::ops::elementwise::cast::Cast;

use super::{Call, Work, check_dense};
use crate::args::CastArgs;
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::Layout;
use crate::manifest::cpp_type;

pub(super) fn cast(op: &Cast, operands: &[Layout]) -> Result<Call> {
    let x = &operands[0];
    if cpp_type(x.dtype).is_none() || cpp_type(op.to).is_none() {
        rlx_ir::bail!(UnsupportedOnDevice, "from {} to {}", x.dtype, op.to);
    }
    if x.dtype == op.to {
        return super::copy(x, &Layout::dense(&rlx_ir::TensorType::new(x.dtype, x.shape.clone())));
    }
    check_dense(0, x)?;
    let args = CastArgs { elems: index(x.elems())? };
    Call::new(&format!("cast_{}_{}", x.dtype, op.to), &args, 1, Work::PerElement(x.elems()))
}
