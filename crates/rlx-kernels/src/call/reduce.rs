//! Calls of the reductions.

use rlx_ir::DType;
use rlx_ir::ops::reduce::reduce::Reduce;

use super::{Call, Work, check_dtype};
use crate::args::ReduceArgs;
use crate::error::Result;
use crate::geometry::index;
use crate::layout::{Joined, Layout};

pub(super) fn reduce(op: &Reduce, operands: &[Layout]) -> Result<Call> {
    let x = &operands[0];
    check_dtype(0, x, &[DType::F32, DType::F16, DType::I32, DType::U32])?;
    let reduced = op.reduced(x.shape.len())?;
    let pick = |wanted: bool| {
        let axes = (0..x.shape.len()).filter(|a| reduced[*a] == wanted);
        let (sizes, strides): (Vec<usize>, Vec<usize>) = axes.map(|a| (x.shape[a], x.strides[a])).unzip();
        Joined::new(&sizes, &[&strides])
    };
    let (kept, gone) = (pick(false), pick(true));
    let (outputs, count) = (kept.sizes.iter().product(), gone.sizes.iter().product());
    let args = ReduceArgs {
        outputs: index(outputs)?,
        count: index(count)?,
        kept_rank: index(kept.sizes.len())?,
        reduced_rank: index(gone.sizes.len())?,
        kept_sizes: kept.sizes_arg()?,
        kept_strides: kept.strides_arg(0)?,
        reduced_sizes: gone.sizes_arg()?,
        reduced_strides: gone.strides_arg(0)?,
    };
    let innermost = |j: &Joined| j.strides[0].last().copied().unwrap_or(usize::MAX);
    // Threads that are neighbours read neighbours, whichever axes are kept.
    let columns = innermost(&kept) < innermost(&gone);
    let (function, work) = match columns {
        true => ("reduce_columns", Work::PerElement(outputs)),
        false => ("reduce_rows", Work::PerRow { rows: outputs, width: count }),
    };
    let kind = op.kind.name().trim_start_matches("reduce_");
    Call::new(&format!("{function}_{kind}_{}", x.dtype), &args, 1, work)
}
