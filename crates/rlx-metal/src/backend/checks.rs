//! What kernels cannot report: indices that lie outside. Inputs are seen by the host, so they are looked at before a run.

use rlx_compile::plan::{Home, Operand, Plan, SizeId, Sizes, Step};
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::pooling::pool::Pool;
use rlx_ir::{DType, bail};

use crate::error::{Error, Result};

/// A condition on the values of an input.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// The input.
    pub(super) input: usize,
    dtype: DType,
    kind: Kind,
    /// The step that needs it.
    step: usize,
    op: String,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Ids of this many rows.
    Ids(SizeId),
    /// Starts of sequences of this many tokens; the longest must not exceed the width of a mask.
    Starts { tokens: SizeId, widest: Option<SizeId> },
}

/// All conditions of a plan.
pub(super) fn of_plan(plan: &Plan) -> Vec<Check> {
    plan.steps.iter().enumerate().flat_map(|(index, step)| of_step(plan, index, step)).collect()
}

fn of_step(plan: &Plan, index: usize, step: &Step) -> Option<Check> {
    let rlx_compile::plan::Action::Op(op) = &step.action else { return None };
    let (operand, kind) = if op.is::<Embedding>() {
        (1, Kind::Ids(step.operands[0].shape[0]))
    } else if op.is::<Attention>() {
        let widest = step.operands.get(4).and_then(|mask| mask.shape.last().copied());
        (3, Kind::Starts { tokens: step.operands[0].shape[0], widest })
    } else if op.is::<Pool>() {
        (1, Kind::Starts { tokens: step.operands[0].shape[0], widest: None })
    } else {
        return None;
    };
    let operand: &Operand = step.operands.get(operand)?;
    match plan.buffer(operand.buffer).home {
        // A part of an input is left to the kernel, which stays inside of its operands whatever comes.
        Home::Input(input) if operand.dense && plan.sizes.dim(operand.offset).as_const() == Some(0) => {
            let (dtype, op) = (operand.ty.dtype, op.name().to_owned());
            Some(Check { input: input as usize, dtype, kind, step: index, op })
        }
        _ => None,
    }
}

impl Check {
    /// Looks at the input's bytes.
    ///
    /// # Errors
    /// `InvalidArgument` naming the step, the place and the value.
    pub(super) fn run(&self, bytes: &[u8], sizes: &Sizes) -> Result<()> {
        let found = match self.kind {
            Kind::Ids(rows) => ids(self.values(bytes), sizes.get(rows)),
            Kind::Starts { tokens, widest } => {
                starts(self.values(bytes), sizes.get(tokens), widest.map(|w| sizes.get(w)))
            }
        };
        found.map_err(|e| e.context(format!("step {}, {}", self.step, self.op)))
    }

    fn values<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = i64> + 'a {
        let (width, signed) = match self.dtype {
            DType::I64 => (8, true),
            DType::U32 => (4, false),
            _ => (4, true),
        };
        bytes.chunks_exact(width).map(move |b| match (b, signed) {
            (&[a, b, c, d], true) => i64::from(i32::from_le_bytes([a, b, c, d])),
            (&[a, b, c, d], false) => i64::from(u32::from_le_bytes([a, b, c, d])),
            (&[a, b, c, d, e, f, g, h], _) => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => -1,
        })
    }
}

fn ids(values: impl Iterator<Item = i64>, rows: usize) -> Result<()> {
    for id in values {
        if usize::try_from(id).is_ok_and(|id| id < rows) {
            continue;
        }
        bail!(InvalidArgument, "id {id} is outside of the table of {rows} rows");
    }
    Ok(())
}

fn starts(values: impl Iterator<Item = i64>, tokens: usize, widest: Option<usize>) -> Result<()> {
    let mut last = None;
    for (r, start) in values.enumerate() {
        let least = last.unwrap_or(0);
        let Some(at) = usize::try_from(start).ok().filter(|at| *at >= least && *at <= tokens) else {
            bail!(InvalidArgument, "starts[{r}] is {start}, but starts must ascend within 0 to {tokens}");
        };
        if let (Some(widest), Some(last)) = (widest, last)
            && at - last > widest
        {
            bail!(
                InvalidArgument,
                "sequence {} has {} tokens, but the mask is for {widest}",
                r - 1,
                at - last
            );
        }
        last = Some(at);
    }
    Ok(())
}
