//! Graphs: values, nodes in topological order, declarations.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::op::OpRef;
use crate::symbols::Symbols;
use crate::tensor::Tensor;
use crate::types::Type;

/// A value of one graph: of the one that its builder made, and of copies of that.
///
/// Builders and parsers tell values of other graphs from their own by a mark of 12 bits, so that an operand taken from another
/// graph by mistake is an error. The mark comes again after 4095 graphs: do not rely on the error.
// The index and, in the low bits, the graph's mark: passes copy many of these, so they are small.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Value(u32);

impl Value {
    pub(crate) fn new(index: usize, graph: GraphMark) -> Self {
        Self((index.min(MAX_VALUES) as u32) << MARK_BITS | graph.0)
    }

    /// The index into [`Graph::values`].
    pub fn index(self) -> usize {
        (self.0 >> MARK_BITS) as usize
    }
}

impl Hash for Value {
    /// The index alone, so that the order of a hashed collection is the same in every process.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u32(self.0 >> MARK_BITS);
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Value({})", self.index())
    }
}

/// The bits of a [`Value`] that tell graphs apart.
const MARK_BITS: u32 = 12;

/// The most values of a graph; a model of a hundred layers has some ten thousand.
pub(crate) const MAX_VALUES: usize = (1 << (u32::BITS - MARK_BITS)) - 1;

/// What tells the values of one graph from those of others. It is in nothing that is computed or printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GraphMark(u32);

impl GraphMark {
    /// A mark that none of the 4095 graphs has which were made before this one.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed) & ((1 << MARK_BITS) - 1))
    }
}

/// A node of one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// The index into [`Graph::nodes`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Def {
    /// Given at each run, under this name.
    Input(Arc<str>),
    /// A named constant whose bytes live outside the graph.
    Weight {
        /// The name in the weight source.
        name: Arc<str>,
        /// Values for tests; weights of a model come from its files.
        init: WeightInit,
    },
    /// A small constant in the graph itself.
    Const(Arc<Tensor>),
    /// The state of this name as it is before the run.
    State(Arc<str>),
    /// A result of a node.
    Result {
        /// The node.
        node: NodeId,
        /// Which of its results.
        index: u32,
    },
}

/// Where a weight's values come from.
#[derive(Clone, Debug, PartialEq)]
pub enum WeightInit {
    /// From the weight source, by name.
    External,
    /// Pseudo-random values of this seed: see [`crate::interp::seeded`].
    Seed(u64),
    /// These values.
    Inline(Arc<Tensor>),
}

/// Type, origin and printed name of a value.
#[derive(Clone, Debug)]
pub struct ValueInfo {
    /// Dtype and shape.
    pub ty: Type,
    /// Where it comes from.
    pub def: Def,
    /// The name in the text form without `%`; unique in the graph.
    pub name: Arc<str>,
}

/// The values that a node reads or makes. Most nodes have few, which lie in the node itself: passes copy graphs often.
pub type Values = SmallVec<[Value; 4]>;

/// The types of what a node reads or makes.
pub type Types = SmallVec<[Type; 4]>;

/// An op applied to operands.
#[derive(Clone, Debug)]
pub struct Node {
    /// The op.
    pub op: OpRef,
    /// The operands.
    pub operands: Values,
    /// The results.
    pub results: Values,
    /// The part of the model that the node belongs to: `layers.0.attention`; empty where none is named.
    pub scope: Arc<str>,
}

/// A list of nodes in topological order over declared inputs, weights, constants and states.
///
/// Made by a [`Builder`](crate::Builder) or by [`parse`](crate::text::parse); immutable from then on.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pub(crate) mark: GraphMark,
    pub(crate) name: String,
    pub(crate) symbols: Symbols,
    pub(crate) values: Vec<ValueInfo>,
    pub(crate) nodes: Vec<Node>,
    pub(crate) outputs: Vec<Value>,
    /// Whether the verifier has seen it as it is.
    pub(crate) verified: bool,
    /// What [`users`](Self::users) gives, once it was asked for: passes that change nothing hand the graph on with it.
    pub(crate) users: OnceLock<Arc<Users>>,
}

impl Graph {
    /// The graph's name without `@`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The symbols and their bounds.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// All values; a [`Value`] is an index into them.
    pub fn values(&self) -> &[ValueInfo] {
        &self.values
    }

    /// All value handles.
    pub fn value_ids(&self) -> impl Iterator<Item = Value> + use<> {
        let mark = self.mark;
        (0..self.values.len()).map(move |index| Value::new(index, mark))
    }

    /// Whether `value` is one of this graph. A value of a graph that was made thousands of graphs before may pass for one: see
    /// [`Value`].
    pub fn contains(&self, value: Value) -> bool {
        value == Value::new(value.index(), self.mark) && value.index() < self.values.len()
    }

    /// Type, origin and name of `value`, which is one of this graph.
    ///
    /// # Panics
    /// Where `value` is of another graph and this one has no value at its index; see [`contains`](Self::contains).
    pub fn value(&self, value: Value) -> &ValueInfo {
        &self.values[value.index()]
    }

    /// The type of `value`, which is one of this graph.
    ///
    /// # Panics
    /// Where `value` is of another graph and this one has no value at its index; see [`contains`](Self::contains).
    pub fn ty(&self, value: Value) -> &Type {
        &self.value(value).ty
    }

    /// The nodes in topological order; a [`NodeId`] is an index into them.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes with their handles.
    pub fn iter_nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(i, n)| (NodeId(u32::try_from(i).unwrap_or(u32::MAX)), n))
    }

    /// The node `id`.
    ///
    /// # Panics
    /// Where `id` is of another graph and this one has no node at its index.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// The returned values.
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// The inputs in order of declaration, with their names.
    pub fn inputs(&self) -> impl Iterator<Item = (Value, &str)> {
        self.declared(|d| if let Def::Input(n) = d { Some(&**n) } else { None })
    }

    /// The weights in order of declaration, with their names.
    pub fn weights(&self) -> impl Iterator<Item = (Value, &str)> {
        self.declared(|d| if let Def::Weight { name, .. } = d { Some(&**name) } else { None })
    }

    /// The states in order of declaration, with their names.
    pub fn states(&self) -> impl Iterator<Item = (Value, &str)> {
        self.declared(|d| if let Def::State(n) = d { Some(&**n) } else { None })
    }

    fn declared<'a>(
        &'a self,
        pick: impl Fn(&'a Def) -> Option<&'a str> + 'a,
    ) -> impl Iterator<Item = (Value, &'a str)> {
        self.value_ids().filter_map(move |v| pick(&self.values[v.index()].def).map(|n| (v, n)))
    }

    /// The types of a node's operands.
    pub fn operand_types(&self, node: &Node) -> Types {
        node.operands.iter().map(|&v| self.ty(v).clone()).collect()
    }

    /// The types of a node's results.
    pub fn result_types(&self, node: &Node) -> Types {
        node.results.iter().map(|&v| self.ty(v).clone()).collect()
    }

    /// Whether the graph holds the verifier's invariants for sure: it was verified when it was finished or parsed.
    pub fn is_verified(&self) -> bool {
        self.verified
    }

    /// For every value the nodes that read it, in order; a node that reads it twice is listed twice.
    pub fn users(&self) -> Arc<Users> {
        self.users.get_or_init(|| Arc::new(self.find_users())).clone()
    }

    fn find_users(&self) -> Users {
        let mut ends = vec![0u32; self.values.len() + 1];
        for operand in self.nodes.iter().flat_map(|n| &n.operands) {
            ends[operand.index()] += 1;
        }
        // Now each entry is the end of its value's part; filling it from the back leaves the start there.
        let mut total = 0;
        for end in &mut ends {
            total += *end;
            *end = total;
        }
        let mut nodes = vec![NodeId(0); total as usize];
        for (index, node) in self.nodes.iter().enumerate().rev() {
            let id = NodeId(u32::try_from(index).unwrap_or(u32::MAX));
            for operand in node.operands.iter().rev() {
                let at = &mut ends[operand.index()];
                *at -= 1;
                nodes[*at as usize] = id;
            }
        }
        Users { starts: ends, nodes }
    }
}

/// The readers of each value of one graph, in one list.
#[derive(Clone, Debug)]
pub struct Users {
    starts: Vec<u32>,
    nodes: Vec<NodeId>,
}

impl Users {
    /// The nodes that read `value`, in order.
    pub fn of(&self, value: Value) -> &[NodeId] {
        let [start, end] = [0, 1].map(|i| self.starts[value.index() + i] as usize);
        &self.nodes[start..end]
    }
}

impl PartialEq for Graph {
    /// Two graphs are equal when they print alike.
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}
