//! Rules as values, and the patches that they return.

use rlx_ir::{Builder, Graph, NodeId, Value};

use super::Matcher;
use crate::Result;

/// What a rule does to the values of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Numerics {
    /// The same bits (a zero may change its sign only where the rule says so).
    Exact,
    /// The same terms in another order, or with fewer roundings in between.
    Reassociates,
    /// Intermediate values are kept with fewer bits.
    LowersPrecision,
}

/// A rewrite rule: pattern, guard and replacement are one function.
#[derive(Clone, Copy)]
pub struct Rule {
    /// The name, unique over all passes.
    pub name: &'static str,
    /// What it does to values.
    pub numerics: Numerics,
    /// One sentence: what becomes what.
    pub doc: &'static str,
    /// Looks at the node where the pattern ends.
    pub apply: fn(&Matcher<'_>, NodeId) -> Outcome,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?}): {}", self.name, self.numerics, self.doc)
    }
}

/// What a rule says of a node.
#[derive(Debug)]
pub enum Outcome {
    /// The pattern is not here.
    NoMatch,
    /// The pattern is here, but the guard refuses, because of this.
    NearMiss(String),
    /// Replace this.
    Patch(Patch),
}

/// Builds a replacement from the operands that the patch reads; returns one value for each that it replaces.
pub(crate) type Build = Box<dyn FnOnce(&mut Builder, &[Value]) -> Result<Vec<Value>>>;

/// A replacement of some nodes by others.
pub struct Patch {
    pub(crate) covers: Vec<NodeId>,
    pub(crate) reads: Vec<Value>,
    pub(crate) replaces: Vec<Value>,
    /// Whether what is read takes the place of what is replaced, so that readers of the one become readers of the other.
    pub(crate) forwards: bool,
    pub(crate) build: Build,
}

impl std::fmt::Debug for Patch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Patch")
            .field("covers", &self.covers)
            .field("reads", &self.reads)
            .field("replaces", &self.replaces)
            .finish_non_exhaustive()
    }
}

impl Patch {
    /// Replaces the values `replaces` by what `build` makes of the values `reads`; the nodes `covers` vanish. A result of
    /// a covered node that is not replaced must have no reader outside them.
    pub fn new(
        covers: impl Into<Vec<NodeId>>,
        reads: impl Into<Vec<Value>>,
        replaces: impl Into<Vec<Value>>,
        build: impl FnOnce(&mut Builder, &[Value]) -> Result<Vec<Value>> + 'static,
    ) -> Self {
        Self {
            covers: covers.into(),
            reads: reads.into(),
            replaces: replaces.into(),
            forwards: false,
            build: Box::new(build),
        }
    }

    /// Replaces all results of one node.
    pub fn of_node(
        graph: &Graph,
        node: NodeId,
        reads: impl Into<Vec<Value>>,
        build: impl FnOnce(&mut Builder, &[Value]) -> Result<Vec<Value>> + 'static,
    ) -> Self {
        Self::new([node], reads, graph.node(node).results.to_vec(), build)
    }

    /// Replaces the single result of `node` by `value`, which exists.
    pub fn forward(graph: &Graph, node: NodeId, value: Value) -> Self {
        Self { forwards: true, ..Self::of_node(graph, node, [value], |_, x| Ok(x.to_vec())) }
    }
}
