//! The table from ops to thunks: what each takes, which operand it wants packed, and what runs the rest.

use std::sync::Arc;

use rlx_compile::plan::{Plan, Step};
use rlx_compile::{Layout, OpFacts, OperandFacts, Support};
use rlx_ir::op::Tier;
use rlx_ir::{DType, OpRef, bail};

use super::Machine;
use super::custom::Custom;
use super::weights::PACKED;
use crate::error::{Error, Result};
use crate::thunks::{self, Thunk, reference::Reference};

/// An op for which there is a kernel.
pub(crate) struct Entry {
    /// The op's name.
    pub(crate) op: &'static str,
    /// What the kernel takes.
    pub(crate) supports: fn(&OpFacts<'_>) -> Support,
    /// Makes the thunk.
    pub(crate) build: fn(&OpFacts<'_>) -> Result<Box<dyn Thunk>>,
    /// Whether an operand is a packed weight.
    pub(crate) packs: fn(&OpFacts<'_>, usize) -> bool,
    /// The operand whose memory the result may take over.
    pub(crate) in_place: fn(&OpFacts<'_>) -> Option<usize>,
}

impl Entry {
    /// An entry that packs nothing and works out of place.
    pub(crate) const fn new(
        op: &'static str,
        supports: fn(&OpFacts<'_>) -> Support,
        build: fn(&OpFacts<'_>) -> Result<Box<dyn Thunk>>,
    ) -> Self {
        Self { op, supports, build, packs: |_, _| false, in_place: |_| None }
    }
}

/// A kernel's answer: `No` with the first condition that does not hold.
pub(crate) fn require(conditions: &[(bool, &str)]) -> Support {
    match conditions.iter().find(|(holds, _)| !holds) {
        Some((_, what)) => Support::No(format!("the CPU kernel wants {what}")),
        None => Support::Yes,
    }
}

/// Whether all operands are dense.
pub(crate) fn all_dense(facts: &OpFacts<'_>) -> bool {
    facts.operands.iter().all(|o| o.strides.is_none())
}

/// Whether an operand's last axis has no gaps and the others may have any stride.
pub(crate) fn dense_rows(operand: &OperandFacts) -> bool {
    operand.strides.as_ref().is_none_or(|s| s.last().is_none_or(|d| d.as_const() == Some(1)))
}

/// Whether this is a float dtype that the kernels compute with.
pub(crate) fn is_small_float(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
}

/// Whether tokens `[N, heads, head_dim]` have no gaps inside; they may lie apart, as parts of a joint row.
pub(crate) fn token_rows(operand: &OperandFacts) -> bool {
    let Some(strides) = &operand.strides else { return operand.ty.rank() >= 1 };
    let inner = rlx_ir::View::dense(&operand.ty.shape).strides;
    strides.iter().zip(&inner).skip(1).all(|(have, want)| have == want)
}

fn entry(op: &str) -> Option<&'static Entry> {
    thunks::entries().find(|e| e.op == op)
}

impl Machine {
    /// The program's own kernel for this, where there is one.
    pub(crate) fn custom(&self, facts: &OpFacts<'_>) -> Option<&Arc<dyn super::CpuKernel>> {
        let fits = |k: &&Arc<dyn super::CpuKernel>| {
            k.op() == facts.op.name() && all_dense(facts) && k.supports(facts).is_yes()
        };
        self.custom.iter().find(fits)
    }

    /// The layout of the weight that is operand `index`. The program's own kernels take rows.
    pub(crate) fn weight_layout(&self, facts: &OpFacts<'_>, index: usize) -> Layout {
        let packed = self.custom(facts).is_none()
            && entry(facts.op.name())
                .is_some_and(|e| (e.packs)(facts, index) && (e.supports)(facts).is_yes());
        if packed { PACKED } else { Layout::ROWS }
    }

    /// The operand whose memory the result may take over. A kernel of the program's own works out of place.
    pub(crate) fn in_place(&self, facts: &OpFacts<'_>) -> Option<usize> {
        if self.custom(facts).is_some() {
            return None;
        }
        let entry = entry(facts.op.name()).filter(|e| (e.supports)(facts).is_yes())?;
        (entry.in_place)(facts)
    }

    /// Whether some thunk runs this.
    pub(crate) fn supports(&self, facts: &OpFacts<'_>) -> Support {
        if self.custom(facts).is_some() {
            return Support::Yes;
        }
        let answer = entry(facts.op.name())
            .map_or_else(|| Support::No("the CPU has no kernel for it".to_owned()), |e| (e.supports)(facts));
        match (answer, facts.op.tier()) {
            (Support::Yes, _) => Support::Yes,
            (_, Tier::Core) if all_dense(facts) => Support::Yes,
            (no, _) => no,
        }
    }

    /// The thunk of a step. What was supported when the plan was made is supported now: the facts are the same.
    pub(crate) fn thunk(&self, op: &OpRef, step: &Step, plan: &Plan) -> Result<Box<dyn Thunk>> {
        let operands = plan.operand_facts(step);
        let results: Vec<_> = step.results.iter().map(|r| r.ty.clone()).collect();
        let facts = OpFacts { op: &**op, operands: &operands, results: &results, symbols: &plan.symbols };
        if let Some(kernel) = self.custom(&facts) {
            return Ok(Box::new(Custom { kernel: kernel.clone(), op: op.clone() }));
        }
        if let Some(entry) = entry(op.name())
            && (entry.supports)(&facts).is_yes()
        {
            return (entry.build)(&facts);
        }
        match op.tier() {
            Tier::Core => Ok(Box::new(Reference { op: op.clone() })),
            Tier::Composite => bail!(UnsupportedOnDevice, "{}: the CPU has no kernel for it", op.name()),
        }
    }
}
