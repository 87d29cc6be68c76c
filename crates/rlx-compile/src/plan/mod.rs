//! The plan: a device-neutral list of steps over buffers, with everything that can be known before a run.
//!
//! - [`Step`]s run in order; each has an op and [`Operand`]s, which are strided views of buffers.
//! - [`Buffer`]s live in the arena at constant offsets that were planned at the symbols' bounds, or belong to an input, a
//!   state or a prepared weight.
//! - [`PreparedWeight`]s are the weight-only work, done once at load.
//! - All sizes are entries of one [`SizeTable`]; binding new symbols evaluates that table and nothing else.
//! - [`PlanRegion`]s name steps that belong together, for backends that run them as one thing.
//!
//! Next door: `memory` lays out the arena, `prepare` describes weights, `build` turns a graph into a plan, `regions` finds
//! regions in it, `context` tells what a place to run it in needs.

mod build;
mod context;
mod memory;
mod prepare;
mod print;
mod regions;
mod sizes;

use rlx_ir::op::Cost;
use rlx_ir::{Dim, OpRef, Symbols, Type};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

use crate::target::{OperandFacts, Role};

pub use build::build_plan;
pub use memory::{ArenaLayout, Lifetime, Placement, lay_out};
pub use prepare::{OpExpr, PreparedWeight, WeightExpr};
pub use regions::{
    AttentionBlock, BertLayer, Claim, EmbeddingBlock, NomicLayer, PlanRegion, PoolingHead, RegionKind,
    RegionMiss, ResultRef,
};
pub use sizes::{SizeId, SizeTable, Sizes};

/// A compiled graph, before a backend makes an executable of it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The graph's name.
    pub name: String,
    /// The symbols to bind, with their bounds.
    pub symbols: Symbols,
    /// Every size that a step or buffer needs.
    pub sizes: SizeTable,
    /// Pairs of sizes of which the first must not exceed the second: ranges that views take.
    pub conditions: Vec<(Dim, Dim)>,
    /// The inputs in order of declaration.
    pub inputs: Vec<Port>,
    /// The states in order of declaration.
    pub states: Vec<Port>,
    /// The returned values.
    pub outputs: Vec<Operand>,
    /// Weight-only work, done once at load.
    pub prepare: Vec<PreparedWeight>,
    /// All buffers; a [`BufferId`] is an index into them.
    pub buffers: Vec<Buffer>,
    /// The steps in order.
    pub steps: Vec<Step>,
    /// Size and quality of the arena.
    pub arena: ArenaLayout,
    /// Steps that belong together, in the order of their first steps, outer ones before what lies within them.
    pub regions: Vec<PlanRegion>,
    /// What looks like a region, but is none.
    pub region_misses: Vec<RegionMiss>,
}

/// An input or a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The name in the graph.
    pub name: String,
    /// Dtype and symbolic shape.
    pub ty: Type,
    /// The buffer that holds it.
    pub buffer: BufferId,
}

/// An index into [`Plan::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub u32);

impl BufferId {
    /// The index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Memory that steps read and write.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Where it lives.
    pub home: Home,
    /// The bytes in use at the bound sizes.
    pub bytes: SizeId,
}

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The input of this index, given at each run.
    Input(u32),
    /// The state of this index, kept between runs.
    State(u32),
    /// The prepared weight of this index.
    Weight(u32),
    /// In the arena at this byte offset, with this many bytes at the bounds.
    Arena {
        /// Bytes from the arena's start.
        offset: u64,
        /// The most bytes that it ever uses.
        reserved: u64,
    },
}

/// Sizes or strides per axis; few, which lie in the list itself.
pub type AxisSizes = SmallVec<[SizeId; 4]>;

/// A strided view of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The buffer.
    pub buffer: BufferId,
    /// Dtype and symbolic shape.
    pub ty: Type,
    /// Sizes per axis.
    pub shape: AxisSizes,
    /// Strides per axis, in elements.
    pub strides: AxisSizes,
    /// The first element.
    pub offset: SizeId,
    /// Whether the elements are dense and row-major from `offset` on.
    pub dense: bool,
    /// Where its values come from.
    pub role: Role,
}

impl Operand {
    /// The bytes from the first element to the last one, gaps between them among them, counted from the buffer's start.
    pub fn span(&self, sizes: &Sizes) -> Range<usize> {
        let elems = match self.dense {
            true => self.shape.iter().map(|&s| sizes.get(s)).product(),
            false => self.extent(sizes),
        };
        let bytes = elems / self.ty.dtype.block_elems() * self.ty.dtype.block_bytes();
        // A view without elements may begin anywhere.
        let first = if bytes == 0 { 0 } else { sizes.get(self.offset) * self.ty.dtype.block_bytes() };
        first..first.saturating_add(bytes)
    }

    /// Elements from the first to the last one of a view with gaps.
    fn extent(&self, sizes: &Sizes) -> usize {
        let mut last = 0;
        for (&size, &stride) in self.shape.iter().zip(&self.strides) {
            match sizes.get(size) {
                0 => return 0,
                n => last += (n - 1) * sizes.get(stride),
            }
        }
        last + 1
    }
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Runs the op.
    Op(OpRef),
    /// Copies a strided view into a dense buffer.
    Copy,
}

impl Action {
    /// The op's name, or `copy`.
    pub fn name(&self) -> &str {
        match self {
            Self::Op(op) => op.name(),
            Self::Copy => "copy",
        }
    }
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// What it reads.
    pub operands: Vec<Operand>,
    /// What it writes. The first one may share the buffer of an operand that is read here for the last time.
    pub results: Vec<Operand>,
    /// The part of the model that it belongs to; empty where none is named.
    pub scope: Arc<str>,
    /// The queue that it runs on. Steps of one queue run in order.
    pub queue: u8,
}

impl Step {
    /// Its operations and traffic.
    pub fn cost(&self) -> Cost {
        let types = |list: &[Operand]| list.iter().map(|o| o.ty.clone()).collect::<Vec<Type>>();
        let (operands, results) = (types(&self.operands), types(&self.results));
        match &self.action {
            Action::Op(op) => op.cost(&operands, &results),
            Action::Copy => Cost::of_types(Dim::constant(0), &operands, &results),
        }
    }

    /// What a backend was told about the operands when it said that it supports the step; `sizes` are the plan's.
    pub fn operand_facts(&self, sizes: &SizeTable) -> Vec<OperandFacts> {
        let strides = |o: &Operand| o.strides.iter().map(|&s| sizes.dim(s).clone()).collect();
        let facts = |o: &Operand| OperandFacts {
            ty: o.ty.clone(),
            role: o.role,
            strides: (!o.dense).then(|| strides(o)),
        };
        self.operands.iter().map(facts).collect()
    }
}

/// What a backend makes one call of: a step by itself, or a region that it claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit<'a> {
    /// The step of this index.
    Step(usize),
    /// The steps of a claimed region.
    Region(&'a PlanRegion),
}

impl Plan {
    /// The buffer `id`.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.index()]
    }

    /// What a backend was told about the operands of `step` when it said that it supports it.
    pub fn operand_facts(&self, step: &Step) -> Vec<OperandFacts> {
        step.operand_facts(&self.sizes)
    }

    /// All steps in order, those of claimed regions together.
    pub fn units(&self) -> impl Iterator<Item = Unit<'_>> {
        let mut claimed = self.regions.iter().filter(|r| r.is_claimed()).peekable();
        let mut step = 0;
        std::iter::from_fn(move || {
            let start = step;
            if let Some(region) = claimed.next_if(|r| r.steps.start == start) {
                step = region.steps.end;
                return Some(Unit::Region(region));
            }
            step += 1;
            (start < self.steps.len()).then_some(Unit::Step(start))
        })
    }
}
