//! `reshape`, `transpose`, `broadcast` and `slice` where a plan has no view: of block types, whose blocks are copied whole, and
//! of weights that take sizes of the run.

use rlx_compile::{OpFacts, Support};
use rlx_ir::{Dim, View, bail};

use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::memory::copy_strided;

/// The entries of this family.
pub(crate) static ENTRIES: &[Entry] = &{
    const fn entry(op: &'static str) -> Entry {
        Entry::new(op, supports, build)
    }
    [entry("reshape"), entry("transpose"), entry("broadcast"), entry("slice")]
};

/// The operand as the result sees it, in elements.
fn view(facts: &OpFacts<'_>) -> Option<View> {
    let dense = View::dense(&facts.operands.first()?.ty.shape);
    facts.op.view(&dense, facts.results.first()?)
}

fn supports(facts: &OpFacts<'_>) -> Support {
    let whole = |view: View| view.strides.last() == Some(&Dim::constant(1));
    let fits = view(facts).is_some_and(|view| !facts.results[0].dtype.is_block() || whole(view));
    require(&[(fits, "rows of whole blocks"), (all_dense(facts), "dense operands")])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    match view(facts) {
        Some(view) => Ok(Box::new(Run { view })),
        None => bail!(Bug, "{} is no view", facts.op.name()),
    }
}

#[derive(Debug)]
struct Run {
    view: View,
}

impl Run {
    /// Copies the view, all of whose numbers count `T`.
    fn of<T: bytemuck::Pod + Send + Sync>(
        call: &mut StepCall<'_>,
        shape: &[usize],
        strides: &[usize],
        offset: usize,
    ) -> Result<()> {
        match call.read::<T>(0)?.get(offset..) {
            Some(x) => copy_strided(call.cpu, shape, x, strides, call.write(0)?),
            None => bail!(InvalidArgument, "a range begins beyond its operand"),
        }
    }
}

impl Thunk for Run {
    fn kernel(&self) -> &str {
        "copy view"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let dtype = call.step.results[0].ty.dtype;
        let mut shape = call.result_shape(0);
        let size = |dim: &Dim| call.bindings.size(dim);
        let mut strides = self.view.strides.iter().map(size).collect::<rlx_ir::Result<Vec<usize>>>()?;
        let mut offset = size(&self.view.offset)?;
        if !dtype.is_block() {
            return match dtype.block_bytes() {
                1 => Self::of::<u8>(call, &shape, &strides, offset),
                2 => Self::of::<u16>(call, &shape, &strides, offset),
                4 => Self::of::<u32>(call, &shape, &strides, offset),
                _ => Self::of::<u64>(call, &shape, &strides, offset),
            };
        }
        let bytes = |elems: usize| elems / dtype.block_elems() * dtype.block_bytes();
        strides.iter_mut().for_each(|stride| *stride = bytes(*stride));
        if let (Some(size), Some(stride)) = (shape.last_mut(), strides.last_mut()) {
            (*size, *stride) = (bytes(*size), 1);
        }
        offset = bytes(offset);
        Self::of::<u8>(call, &shape, &strides, offset)
    }
}
