//! What rules look at a graph with.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use rlx_ir::attrs::AttrValue;
use rlx_ir::op::{EvalContext, evaluate};
use rlx_ir::{Bindings, Def, Graph, Node, NodeId, Op, Symbols, Tensor, Type, Types, Users, Value};
use smallvec::SmallVec;

use crate::passes::PassContext;
use crate::precision::PrecisionPolicy;
use crate::{OpFacts, OperandFacts, Role, Support, Target};

/// Below 2^53 every integer is an f64, and no other one rounds to it.
const F64_INTEGERS: f64 = (1u64 << 53) as f64;

/// Constants are evaluated at compile time up to this many elements.
const MAX_FOLDED_ELEMS: usize = 4096;

/// A graph with what rules ask about it: producers, users, roles, constant values, and the target.
pub struct Matcher<'a> {
    graph: &'a Graph,
    target: &'a dyn Target,
    policy: &'a PrecisionPolicy,
    users: Arc<Users>,
    returned: Vec<bool>,
    roles: OnceCell<Vec<Role>>,
    overwriters: OnceCell<Vec<Option<(Value, NodeId)>>>,
    constants: OnceCell<Vec<Option<Arc<Tensor>>>>,
    /// The nodes that the target was asked about and runs.
    supported: OnceCell<Vec<Cell<bool>>>,
}

/// An operand of an op that does not exist yet: a value, or the type of one that a replacement would make.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A value of the graph.
    Value(Value),
    /// A value to be made.
    New(Type, Role),
}

impl From<Value> for Operand {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl std::fmt::Debug for Matcher<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matcher({})", self.graph.name())
    }
}

impl<'a> Matcher<'a> {
    /// A view of `graph`.
    pub fn new(graph: &'a Graph, cx: &PassContext<'a>) -> Self {
        let mut returned = vec![false; graph.values().len()];
        graph.outputs().iter().for_each(|v| returned[v.index()] = true);
        Self {
            graph,
            target: cx.target,
            policy: cx.precision,
            users: graph.users(),
            returned,
            roles: OnceCell::new(),
            overwriters: OnceCell::new(),
            constants: OnceCell::new(),
            supported: OnceCell::new(),
        }
    }

    /// The graph.
    pub fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// The node `id`.
    pub fn node(&self, id: NodeId) -> &'a Node {
        self.graph.node(id)
    }

    /// The type of `value`.
    pub fn ty(&self, value: Value) -> &'a Type {
        self.graph.ty(value)
    }

    /// The node `id` with its op, if that is a `T`.
    pub fn node_as<T: Op>(&self, id: NodeId) -> Option<(&'a Node, &'a T)> {
        let node = self.graph.node(id);
        node.op.downcast::<T>().map(|op| (node, op))
    }

    /// The node that makes `value`.
    pub fn producer(&self, value: Value) -> Option<(NodeId, &'a Node)> {
        match &self.graph.value(value).def {
            Def::Result { node, .. } => Some((*node, self.graph.node(*node))),
            _ => None,
        }
    }

    /// The node that makes `value`, with its op, if that is a `T`.
    pub fn producer_as<T: Op>(&self, value: Value) -> Option<(NodeId, &'a Node, &'a T)> {
        let (id, node) = self.producer(value)?;
        node.op.downcast::<T>().map(|op| (id, node, op))
    }

    /// The nodes that read `value`, in order; a node that reads it twice is there twice.
    pub fn users(&self, value: Value) -> &[NodeId] {
        self.users.of(value)
    }

    /// Whether the graph returns `value`.
    pub fn is_returned(&self, value: Value) -> bool {
        self.returned[value.index()]
    }

    /// Whether one operand of one node is all that reads `value`.
    pub fn single_use(&self, value: Value) -> bool {
        self.users(value).len() == 1 && !self.is_returned(value)
    }

    /// Whether nobody but `nodes` reads `value`.
    pub fn only_used_by(&self, value: Value, nodes: &[NodeId]) -> bool {
        !self.is_returned(value) && self.users(value).iter().all(|u| nodes.contains(u))
    }

    /// Where `value` comes from.
    pub fn role(&self, value: Value) -> Role {
        self.roles.get_or_init(|| roles(self.graph))[value.index()]
    }

    /// Whether `value` is a declared weight.
    pub fn is_weight(&self, value: Value) -> bool {
        matches!(self.graph.value(value).def, Def::Weight { .. })
    }

    /// The version of a state that `value` is, or is a view of, and the node that overwrites it, where one does.
    pub fn overwriter(&self, value: Value) -> Option<(Value, NodeId)> {
        self.overwriters.get_or_init(|| overwriters(self.graph)).get(value.index()).copied().flatten()
    }

    /// The value of which the node `id` makes a view, where it does.
    pub fn viewed(&self, id: NodeId) -> Option<Value> {
        viewed(self.graph, self.node(id))
    }

    /// The precision that the program is to have.
    pub fn policy(&self) -> &'a PrecisionPolicy {
        self.policy
    }

    /// The backend.
    pub fn target(&self) -> &'a dyn Target {
        self.target
    }

    /// The value of a constant, or of what is computed from small constants alone.
    pub fn constant(&self, value: Value) -> Option<&Arc<Tensor>> {
        let constants = self.constants.get_or_init(|| constants(self.graph));
        constants[value.index()].as_ref()
    }

    /// The one number that `value` consists of, where it is a constant whose elements are all equal and f64 holds them.
    pub fn uniform(&self, value: Value) -> Option<f64> {
        let tensor = self.constant(value)?;
        if tensor.dtype().is_block() {
            return None;
        }
        let mut elements = tensor.bytes().chunks(tensor.dtype().block_bytes());
        let first = elements.next()?;
        let number = *tensor.to_f64().ok()?.first()?;
        let exact = !tensor.dtype().is_int() || number.abs() < F64_INTEGERS;
        (exact && elements.all(|e| e == first)).then_some(number)
    }

    /// What the backend is told about a node.
    pub fn operand_facts(&self, node: &Node) -> SmallVec<[OperandFacts; 4]> {
        node.operands.iter().map(|&v| OperandFacts::dense(self.ty(v).clone(), self.role(v))).collect()
    }

    /// Whether the backend runs the node `id`. It is asked until it says yes.
    pub fn supports(&self, id: NodeId) -> Support {
        let known = self.supported.get_or_init(|| vec![Cell::new(false); self.graph.nodes().len()]);
        if known[id.index()].get() {
            return Support::Yes;
        }
        let support = self.ask(self.node(id));
        known[id.index()].set(support.is_yes());
        support
    }

    /// Whether a kernel of the program's own runs the node `id`: then the node is not fused into another.
    pub fn has_own_kernel(&self, id: NodeId) -> bool {
        self.tell(self.node(id), |facts| self.target.has_own_kernel(facts))
    }

    fn ask(&self, node: &Node) -> Support {
        self.tell(node, |facts| self.target.supports(facts))
    }

    fn tell<T>(&self, node: &Node, ask: impl FnOnce(&OpFacts<'_>) -> T) -> T {
        let operands = self.operand_facts(node);
        let results = self.graph.result_types(node);
        let symbols = self.graph.symbols();
        ask(&OpFacts { op: &*node.op, operands: &operands, results: &results, symbols })
    }

    /// The result types of `op` on `operands`, if they fit and the backend runs it.
    ///
    /// # Errors
    /// The reason why not, for a near miss.
    pub fn check(&self, op: &dyn Op, operands: &[Operand]) -> Result<Vec<Type>, String> {
        let facts: SmallVec<[OperandFacts; 4]> = operands
            .iter()
            .map(|o| match o {
                Operand::Value(v) => OperandFacts::dense(self.ty(*v).clone(), self.role(*v)),
                Operand::New(ty, role) => OperandFacts::dense(ty.clone(), *role),
            })
            .collect();
        let types: Types = facts.iter().map(|f| f.ty.clone()).collect();
        let results = op.infer(&types).map_err(|e| e.message().to_owned())?;
        let symbols = self.graph.symbols();
        match self.target.supports(&OpFacts { op, operands: &facts, results: &results, symbols }) {
            Support::Yes => Ok(results),
            Support::No(reason) => Err(format!("the device does not run {}: {reason}", op.name())),
        }
    }

    /// Checks that the results of `op` on `operands` can take the place of `values`: that they fit, the backend runs it, and types
    /// are the same.
    ///
    /// # Errors
    /// The reason why not, for a near miss.
    pub fn check_replaces(&self, op: &dyn Op, operands: &[Operand], values: &[Value]) -> Result<(), String> {
        let types = self.check(op, operands)?;
        types.iter().zip(values).try_for_each(|(ty, &value)| self.same_type(ty, value))
    }

    /// Checks that a value of type `ty` can take the place of `value`.
    ///
    /// # Errors
    /// The reason why not, for a near miss.
    pub fn same_type(&self, ty: &Type, value: Value) -> Result<(), String> {
        let (was, name) = (self.ty(value), &self.graph.value(value).name);
        if ty == was { Ok(()) } else { Err(format!("%{name} is {was}, and would be {ty}")) }
    }
}

/// The value of which `node` makes a view, where it does.
fn viewed(graph: &Graph, node: &Node) -> Option<Value> {
    let ([x], [y]) = (&*node.operands, &*node.results) else { return None };
    node.op.view(&rlx_ir::View::dense(&graph.ty(*x).shape), graph.ty(*y)).map(|_| *x)
}

/// Per value the version of a state that it is or is a view of, with the node that overwrites that, where one does. Empty where
/// no node writes a state.
fn overwriters(graph: &Graph) -> Vec<Option<(Value, NodeId)>> {
    let mut overwriters = Vec::new();
    for (id, node) in graph.iter_nodes() {
        if let (true, Some(&state)) = (node.op.writes_state(), node.operands.first()) {
            overwriters.resize(graph.values().len(), None);
            overwriters[state.index()] = Some((state, id));
        }
    }
    if overwriters.is_empty() {
        return overwriters;
    }
    for node in graph.nodes() {
        if let ([x], [y]) = (&*node.operands, &*node.results)
            && overwriters[x.index()].is_some()
            && viewed(graph, node).is_some()
        {
            overwriters[y.index()] = overwriters[x.index()];
        }
    }
    overwriters
}

/// The role of each value: a result is a weight where all that it is made of are weights and constants.
pub(crate) fn roles(graph: &Graph) -> Vec<Role> {
    let mut roles: Vec<Role> = graph
        .values()
        .iter()
        .map(|info| match info.def {
            Def::Weight { .. } | Def::Const(_) => Role::Weight,
            Def::State(_) => Role::State,
            Def::Input(_) | Def::Result { .. } => Role::Activation,
        })
        .collect();
    for node in graph.nodes() {
        let of_weights =
            node.operands.iter().all(|v| roles[v.index()] == Role::Weight) && !takes_symbols(graph, node);
        let fixed = |v: &Value| graph.ty(*v).shape.dims().iter().all(|d| d.as_const().is_some());
        for (i, result) in node.results.iter().enumerate() {
            roles[result.index()] = match (i == 0 && node.op.writes_state(), of_weights && fixed(result)) {
                (true, _) => Role::State,
                (_, true) => Role::Weight,
                _ => Role::Activation,
            };
        }
    }
    roles
}

/// Whether attributes of `node` depend on symbols (where a slice begins, say), so that even of weights alone it is work of
/// a run.
pub(crate) fn takes_symbols(graph: &Graph, node: &Node) -> bool {
    fn any(value: &AttrValue, symbols: &Symbols) -> bool {
        match value {
            // A symbol alone is printed as a word.
            AttrValue::Word(word) => symbols.contains(word),
            AttrValue::Dim(_) => true,
            AttrValue::List(list) => list.iter().any(|v| any(v, symbols)),
            _ => false,
        }
    }
    node.op.attrs().iter().any(|(_, value)| any(value, graph.symbols()))
}

/// Evaluates what depends on small constants alone. An op that refuses its operands is left to the run.
fn constants(graph: &Graph) -> Vec<Option<Arc<Tensor>>> {
    let mut constants: Vec<Option<Arc<Tensor>>> = graph
        .values()
        .iter()
        .map(|info| if let Def::Const(t) = &info.def { Some(t.clone()) } else { None })
        .collect();
    let bindings = Bindings::new();
    for node in graph.nodes() {
        if node.operands.iter().any(|v| constants[v.index()].is_none()) {
            continue;
        }
        let operands: Option<Vec<Arc<Tensor>>> =
            node.operands.iter().map(|v| constants[v.index()].clone()).collect();
        let types: Option<Vec<_>> = node.results.iter().map(|&v| graph.ty(v).eval(&bindings).ok()).collect();
        let (Some(operands), Some(types)) = (operands, types) else { continue };
        let small = |elems: usize| elems <= MAX_FOLDED_ELEMS;
        if node.op.writes_state()
            || !types.iter().all(|t| small(t.elems()))
            || !operands.iter().all(|t| small(t.elems()))
        {
            continue;
        }
        let operands: Vec<&Tensor> = operands.iter().map(|t| &**t).collect();
        let cx = EvalContext { operands: &operands, results: &types, bindings: &bindings };
        let Ok(results) = evaluate(&*node.op, &cx) else { continue };
        for (value, result) in node.results.iter().zip(results) {
            constants[value.index()] = Some(Arc::new(result.tensor));
        }
    }
    constants
}
