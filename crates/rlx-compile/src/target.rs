//! What the compiler asks of a backend: can it run this op, on these operands, in these layouts.

use rlx_ir::{Dim, Op, Symbols, Type};

use crate::plan::{PlanRegion, SizeTable, Step};

/// What a backend is told about one use of an op. "Supported" is never decided by the op's name alone.
#[derive(Clone, Copy, Debug)]
pub struct OpFacts<'a> {
    /// The op with its attributes (mask kind, scale, softcap, ...).
    pub op: &'a dyn Op,
    /// The operands.
    pub operands: &'a [OperandFacts],
    /// The types of the results.
    pub results: &'a [Type],
    /// The graph's symbols with their bounds.
    pub symbols: &'a Symbols,
}

/// What is known about an operand.
#[derive(Clone, Debug, PartialEq)]
pub struct OperandFacts {
    /// Dtype and shape.
    pub ty: Type,
    /// Where it comes from.
    pub role: Role,
    /// Strides in elements per axis; `None` for dense row-major.
    pub strides: Option<Vec<Dim>>,
}

impl OperandFacts {
    /// A dense operand.
    pub fn dense(ty: Type, role: Role) -> Self {
        Self { ty, role, strides: None }
    }
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Depends on inputs or states: differs from run to run.
    Activation,
    /// Depends on weights and constants alone: prepared once at load.
    Weight,
    /// A state.
    State,
}

/// What a backend is told about a region of a plan.
#[derive(Clone, Copy, Debug)]
pub struct RegionFacts<'a> {
    /// The region: its kind with roles, its range of steps, what goes in and comes out.
    pub region: &'a PlanRegion,
    /// All steps of the plan. Which results share a buffer may still change.
    pub steps: &'a [Step],
    /// The sizes that their operands refer to.
    pub sizes: &'a SizeTable,
    /// The graph's symbols with their bounds.
    pub symbols: &'a Symbols,
}

impl<'a> RegionFacts<'a> {
    /// The region's own steps.
    pub fn region_steps(&self) -> &'a [Step] {
        &self.steps[self.region.steps.clone()]
    }
}

/// A backend's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Support {
    /// It has a kernel for this.
    Yes,
    /// It has none, because of this.
    No(String),
}

impl Support {
    /// Whether the answer is yes.
    pub fn is_yes(&self) -> bool {
        *self == Self::Yes
    }
}

/// The name of the layout in which a backend keeps a prepared weight: `rows` is dense row-major, all others are the
/// backend's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout(pub std::borrow::Cow<'static, str>);

impl Layout {
    /// Dense row-major, as in files.
    pub const ROWS: Self = Self(std::borrow::Cow::Borrowed("rows"));
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A backend, as the compiler sees it.
pub trait Target: Send + Sync {
    /// Whether the backend runs this op on these operands.
    fn supports(&self, facts: &OpFacts<'_>) -> Support;

    /// Whether what runs this op on these operands is a kernel of the program's own. Such a use of an op is not fused into
    /// another op, which would leave that kernel out.
    fn has_own_kernel(&self, _facts: &OpFacts<'_>) -> bool {
        false
    }

    /// The layout in which it wants the weight that is operand `index`.
    fn weight_layout(&self, _facts: &OpFacts<'_>, _index: usize) -> Layout {
        Layout::ROWS
    }

    /// The operand whose memory the first result may take over, where this is its last use and sizes are equal.
    fn in_place(&self, _facts: &OpFacts<'_>) -> Option<usize> {
        None
    }

    /// Whether it runs the region as a whole. A region that it claims stands in the plan with its steps; it must make the
    /// region's [outputs](PlanRegion::outputs) and may leave out all other results. What lies within a claimed region is
    /// not asked about.
    fn claims(&self, _facts: &RegionFacts<'_>) -> Support {
        Support::No("the device runs the steps".to_owned())
    }
}

/// A target that runs everything: for tests, and for dumps that show a graph as a capable backend gets it.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyTarget;

impl Target for AnyTarget {
    fn supports(&self, _facts: &OpFacts<'_>) -> Support {
        Support::Yes
    }
}

/// A target that runs the core ops alone: every composite is decomposed.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoreTarget;

impl Target for CoreTarget {
    fn supports(&self, facts: &OpFacts<'_>) -> Support {
        match facts.op.tier() {
            rlx_ir::op::Tier::Core => Support::Yes,
            rlx_ir::op::Tier::Composite => Support::No("composite".to_owned()),
        }
    }
}
