//! The call of `glu`.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::activation::glu::Glu;

use super::{Call, FLOATS, Work, check_dtype};
use crate::args::GluArgs;
use crate::error::Result;
use crate::geometry::index;
use crate::layout::Layout;

/// The number of an activation in kernels: its place in the list.
pub(super) fn number(activation: Activation) -> u32 {
    let at = Activation::WORDS.iter().position(|(_, a)| *a == activation);
    at.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
}

pub(super) fn glu(op: &Glu, operands: &[Layout]) -> Result<Call> {
    let x = &operands[0];
    check_dtype(0, x, FLOATS)?;
    let (rows, width, x_row) = x.rows()?;
    let elems = rows * (width / 2);
    let args = GluArgs {
        elems: index(elems)?,
        half_width: index(width / 2)?,
        x_row: index(x_row)?,
        activation: number(op.activation),
    };
    Call::new(&format!("glu_{}", x.dtype), &args, 1, Work::PerElement(elems))
}
