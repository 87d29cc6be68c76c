//! What kernels cannot report: indices that lie outside. The host knows inputs and constants, so they are looked at before a run.

use rlx_compile::plan::{Action, Home, Operand, Plan, SizeId, Sizes, Step};
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::paged_attention::PagedAttention;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::pooling::pool::Pool;
use rlx_ir::ops::state::kv_write::KvWrite;
use rlx_ir::{DType, bail};

use crate::error::{Error, Result};

/// A condition on values that the host knows.
#[derive(Clone, Debug)]
pub(super) struct Check {
    /// Parts of inputs without gaps, and constants, in the order in which [`run`](Self::run) wants their bytes.
    pub(super) operands: Vec<Operand>,
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
    /// Slots of this many pages of this many tokens; negative ones are left out.
    Slots { pages: SizeId, page_len: SizeId },
    /// Starts, lengths, and the pages of each sequence.
    Pages { tokens: SizeId, pages: SizeId, page_len: SizeId, each: SizeId },
}

/// All conditions of a plan.
pub(super) fn of_plan(plan: &Plan) -> Vec<Check> {
    plan.steps.iter().enumerate().filter_map(|(index, step)| of_step(plan, index, step)).collect()
}

fn of_step(plan: &Plan, index: usize, step: &Step) -> Option<Check> {
    let Action::Op(op) = &step.action else { return None };
    let size = |operand: usize, axis: usize| step.operands.get(operand)?.shape.get(axis).copied();
    let (operands, kind) = if op.is::<Embedding>() {
        (vec![1], Kind::Ids(size(0, 0)?))
    } else if op.is::<Attention>() {
        let widest = step.operands.get(4).and_then(|mask| mask.shape.last().copied());
        (vec![3], Kind::Starts { tokens: size(0, 0)?, widest })
    } else if op.is::<Pool>() {
        (vec![1], Kind::Starts { tokens: size(0, 0)?, widest: None })
    } else if op.is::<KvWrite>() {
        (vec![2], Kind::Slots { pages: size(0, 0)?, page_len: size(0, 1)? })
    } else if op.is::<PagedAttention>() {
        let (pages, page_len) = (size(1, 0)?, size(1, 1)?);
        (vec![3, 4, 5], Kind::Pages { tokens: size(0, 0)?, pages, page_len, each: size(5, 1)? })
    } else {
        return None;
    };
    let operands: Vec<&Operand> =
        operands.into_iter().map(|at| step.operands.get(at)).collect::<Option<_>>()?;
    // What lies with gaps, or is computed, is left to the kernel, which stays inside of its operands whatever comes.
    let known = |home| matches!(home, Home::Input(_) | Home::Weight(_));
    let seen = |o: &&Operand| o.dense && known(plan.buffer(o.buffer).home);
    if !operands.iter().all(seen) {
        return None;
    }
    let operands = operands.into_iter().cloned().collect();
    Some(Check { operands, kind, step: index, op: op.name().to_owned() })
}

impl Check {
    /// Looks at the operands' bytes.
    ///
    /// # Errors
    /// `InvalidArgument` naming the step, the place and the value.
    pub(super) fn run(&self, bytes: &[&[u8]], sizes: &Sizes) -> Result<()> {
        let values = |at: usize| values(self.operands[at].ty.dtype, bytes[at]);
        let size = |id: SizeId| sizes.get(id);
        let found = match self.kind {
            Kind::Ids(rows) => ids(values(0), size(rows)),
            Kind::Starts { tokens, widest } => starts(values(0), size(tokens), widest.map(size)),
            Kind::Slots { pages, page_len } => slots(values(0), size(pages) * size(page_len)),
            Kind::Pages { tokens, pages, page_len, each } => {
                let shape = Paged { pages: size(pages), page_len: size(page_len), each: size(each) };
                starts(values(0), size(tokens), None).and_then(|()| {
                    shape.check(&values(0).collect::<Vec<_>>(), values(1), &values(2).collect::<Vec<_>>())
                })
            }
        };
        found.map_err(|e| e.context(format!("step {}, {}", self.step, self.op)))
    }
}

/// Integers of 4 or 8 bytes.
fn values(dtype: DType, bytes: &[u8]) -> impl Iterator<Item = i64> {
    let (width, signed) = match dtype {
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

fn slots(values: impl Iterator<Item = i64>, slots: usize) -> Result<()> {
    for (token, slot) in values.enumerate() {
        if usize::try_from(slot).is_ok_and(|slot| slot >= slots) {
            bail!(InvalidArgument, "slots[{token}] is {slot}, but the pages hold {slots} tokens");
        }
    }
    Ok(())
}

/// Pages of a state, and how many of them a sequence may have.
struct Paged {
    pages: usize,
    page_len: usize,
    each: usize,
}

impl Paged {
    fn check(&self, starts: &[i64], lengths: impl Iterator<Item = i64>, table: &[i64]) -> Result<()> {
        let capacity = self.each * self.page_len;
        for ((r, length), range) in lengths.enumerate().zip(starts.windows(2)) {
            let new = usize::try_from(range[1] - range[0]).unwrap_or(0);
            let Some(fits) = usize::try_from(length).ok().filter(|l| (new..=capacity).contains(l)) else {
                bail!(
                    InvalidArgument,
                    "lengths[{r}] is {length}, but {new} tokens are new and {} pages hold {capacity}",
                    self.each
                );
            };
            let used = table.iter().skip(r * self.each).take(fits.div_ceil(self.page_len.max(1)));
            for (at, page) in used.enumerate() {
                if usize::try_from(*page).is_ok_and(|page| page < self.pages) {
                    continue;
                }
                bail!(InvalidArgument, "table[{r}, {at}] is {page}, but there are {} pages", self.pages);
            }
        }
        Ok(())
    }
}
