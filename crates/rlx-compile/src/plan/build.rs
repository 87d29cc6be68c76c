//! From a legal graph to a plan: views, weight-only work, steps, lifetimes and the arena.

use std::sync::Arc;

use rlx_ir::{Bindings, Def, Dim, Graph, Node, Type, Value, View};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::memory::{Lifetime, lay_out};
use super::prepare::{OpExpr, PreparedWeight, WeightExpr};
use super::regions::{self, PlanRegion};
use super::{Action, ArenaLayout, AxisSizes, Buffer, BufferId, Home, Operand, Plan, Port, SizeTable, Step};
use crate::error::{Error, Result};
use crate::rewrite::takes_symbols;
use crate::target::{Layout, OpFacts, OperandFacts, Role, Support, Target};

/// Makes the plan of `graph`, all of whose ops `target` supports.
///
/// # Errors
/// `InvalidArgument` where a symbol that sizes memory has no bound; `UnsupportedOnDevice` where the target refuses an op.
pub fn build_plan(graph: &Graph, target: &dyn Target) -> Result<Plan> {
    let mut b = PlanBuilder::new(graph, target)?;
    for (index, node) in graph.nodes().iter().enumerate() {
        b.node(index, node)?;
    }
    let plan = b.finish()?;
    if cfg!(debug_assertions) {
        plan.verify_regions()?;
    }
    Ok(plan)
}

/// Where a value is while the plan is built.
#[derive(Clone, Debug)]
enum Place {
    Weight(Arc<WeightExpr>),
    /// All of a buffer, as most values are.
    Dense(BufferId),
    View(BufferId, Box<View>),
}

/// A buffer before the arena is laid out.
struct Draft {
    home: Option<Home>,
    bytes: Dim,
}

/// The operand that is all of `buffer`.
fn dense_operand(sizes: &mut SizeTable, buffer: BufferId, ty: &Type, role: Role) -> Operand {
    operand(sizes, buffer, &View::dense(&ty.shape), ty, role)
}

/// The operand that is `view` of `buffer`.
fn operand(sizes: &mut SizeTable, buffer: BufferId, view: &View, ty: &Type, role: Role) -> Operand {
    let mut ids = |dims: &[Dim]| dims.iter().map(|d| sizes.intern(d)).collect::<AxisSizes>();
    let (shape, strides) = (ids(&view.shape), ids(&view.strides));
    let offset = sizes.intern(&view.offset);
    Operand { buffer, ty: ty.clone(), shape, strides, offset, dense: view.is_dense(), role }
}

struct PlanBuilder<'a> {
    graph: &'a Graph,
    target: &'a dyn Target,
    sizes: SizeTable,
    places: Vec<Option<Place>>,
    roles: Vec<Role>,
    drafts: Vec<Draft>,
    prepare: Vec<PreparedWeight>,
    /// By the expression's address: equal values are one value since `cse`, and one value has one expression.
    prepared_buffers: FxHashMap<(usize, Layout), BufferId>,
    steps: Vec<Step>,
    conditions: Vec<(Dim, Dim)>,
    inputs: Vec<Port>,
    states: Vec<Port>,
    /// The value whose buffer each value is a view of, and the last node that uses any view of it.
    roots: Vec<Value>,
    last_use: Vec<usize>,
    /// The last node that reads each value itself, views of it among them.
    last_read: Vec<usize>,
    /// The values that are views of each state's buffer as it is now.
    state_views: FxHashMap<BufferId, Vec<Value>>,
}

impl<'a> PlanBuilder<'a> {
    fn new(graph: &'a Graph, target: &'a dyn Target) -> Result<Self> {
        let count = graph.values().len();
        let mut b = Self {
            graph,
            target,
            sizes: SizeTable::default(),
            places: vec![None; count],
            roles: vec![Role::Activation; count],
            drafts: Vec::new(),
            prepare: Vec::new(),
            prepared_buffers: FxHashMap::default(),
            steps: Vec::with_capacity(graph.nodes().len()),
            conditions: Vec::new(),
            inputs: Vec::new(),
            states: Vec::new(),
            roots: graph.value_ids().collect(),
            last_use: vec![0; count],
            last_read: vec![0; count],
            state_views: FxHashMap::default(),
        };
        for value in graph.value_ids() {
            b.declaration(value)?;
        }
        b.find_last_uses();
        Ok(b)
    }

    fn declaration(&mut self, value: Value) -> Result<()> {
        let info = self.graph.value(value);
        let port = |list: &[Port]| u32::try_from(list.len()).unwrap_or(u32::MAX);
        let place = match &info.def {
            Def::Input(name) => {
                let buffer = self.draft(Some(Home::Input(port(&self.inputs))), &info.ty);
                self.inputs.push(Port { name: name.to_string(), ty: info.ty.clone(), buffer });
                Place::Dense(buffer)
            }
            Def::State(name) => {
                self.roles[value.index()] = Role::State;
                let buffer = self.draft(Some(Home::State(port(&self.states))), &info.ty);
                self.states.push(Port { name: name.to_string(), ty: info.ty.clone(), buffer });
                Place::Dense(buffer)
            }
            Def::Weight { name, init } => {
                self.roles[value.index()] = Role::Weight;
                let ty = info.ty.eval(&Bindings::new())?;
                Place::Weight(Arc::new(WeightExpr::Source { name: name.to_string(), ty, init: init.clone() }))
            }
            Def::Const(t) => {
                self.roles[value.index()] = Role::Weight;
                Place::Weight(Arc::new(WeightExpr::Const(t.clone())))
            }
            Def::Result { .. } => return Ok(()),
        };
        self.places[value.index()] = Some(place);
        Ok(())
    }

    fn find_last_uses(&mut self) {
        for (index, node) in self.graph.nodes().iter().enumerate() {
            let is_view = self.view_of(node).is_some();
            for operand in &node.operands {
                self.last_read[operand.index()] = index;
                let root = self.roots[operand.index()];
                if !is_view {
                    self.last_use[root.index()] = index;
                }
            }
            if let (true, Some(first), Some(result)) = (is_view, node.operands.first(), node.results.first())
            {
                self.roots[result.index()] = self.roots[first.index()];
            }
        }
        for output in self.graph.outputs() {
            let root = self.roots[output.index()];
            self.last_use[root.index()] = usize::MAX;
            self.last_read[output.index()] = usize::MAX;
        }
    }

    /// The result of `node` as a view of a dense first operand, where it is a view at all.
    fn view_of(&self, node: &Node) -> Option<View> {
        let ([operand], [result, ..]) = (&*node.operands, &*node.results) else { return None };
        node.op.view(&View::dense(&self.graph.ty(*operand).shape), self.graph.ty(*result))
    }

    fn draft(&mut self, home: Option<Home>, ty: &Type) -> BufferId {
        self.drafts.push(Draft { home, bytes: ty.bytes() });
        BufferId(u32::try_from(self.drafts.len() - 1).unwrap_or(u32::MAX))
    }

    fn node(&mut self, index: usize, node: &Node) -> Result<()> {
        for condition in node.op.conditions(&self.graph.operand_types(node)) {
            if !self.conditions.contains(&condition) {
                self.conditions.push(condition);
            }
        }
        let weight_only = node.operands.iter().all(|v| self.roles[v.index()] == Role::Weight);
        let constant = |v: &Value| self.graph.ty(*v).shape.dims().iter().all(|d| d.as_usize().is_some());
        if weight_only && node.results.iter().all(constant) && !takes_symbols(self.graph, node) {
            return self.weight_node(node);
        }
        if let Some(()) = self.view_node(node)? {
            return Ok(());
        }
        if node.op.writes_state() {
            self.keep_views(index, node);
        }
        self.step_node(index, node)
    }

    /// Copies the views of the state that `node` is about to write, where it or a later node reads them, or the graph returns
    /// them: a value stays what it was.
    fn keep_views(&mut self, index: usize, node: &Node) {
        let Some(&state) = node.operands.first() else { return };
        let Some(Place::Dense(buffer)) = self.places[state.index()] else { return };
        for value in self.state_views.remove(&buffer).unwrap_or_default() {
            if self.last_read[value.index()] < index {
                continue;
            }
            let Some(Place::View(of, view)) = self.places[value.index()].clone() else { continue };
            let ty = self.graph.ty(value).clone();
            let copied = self.copy(of, &view, &ty, &node.scope);
            self.places[value.index()] = Some(Place::Dense(copied.buffer));
            self.roles[value.index()] = Role::Activation;
        }
    }

    /// Work on weights alone is prepared once at load.
    fn weight_node(&mut self, node: &Node) -> Result<()> {
        let operands = node
            .operands
            .iter()
            .map(|v| match &self.places[v.index()] {
                Some(Place::Weight(expr)) => Ok(expr.clone()),
                _ => rlx_ir::bail!(Bug, "{}: a weight operand has no expression", node.op.name()),
            })
            .collect::<Result<Vec<_>>>()?;
        let results = node
            .results
            .iter()
            .map(|v| Ok(self.graph.ty(*v).eval(&Bindings::new())?))
            .collect::<Result<Vec<_>>>()?;
        for (index, &value) in node.results.iter().enumerate() {
            self.roles[value.index()] = Role::Weight;
            let (op, operands, results) = (node.op.clone(), operands.clone(), results.clone());
            let expr = WeightExpr::Op(OpExpr::new(op, operands, index, results));
            self.places[value.index()] = Some(Place::Weight(Arc::new(expr)));
        }
        Ok(())
    }

    fn view_node(&mut self, node: &Node) -> Result<Option<()>> {
        let (Some(&operand), Some(&result)) = (node.operands.first(), node.results.first()) else {
            return Ok(None);
        };
        let ty = self.graph.ty(result);
        if self.view_of(node).is_none() || ty.dtype.is_block() {
            return Ok(None);
        }
        let (buffer, view) = match &self.places[operand.index()] {
            Some(Place::Dense(buffer)) => (*buffer, View::dense(&self.graph.ty(operand).shape)),
            Some(Place::View(buffer, view)) => (*buffer, View::clone(view)),
            Some(Place::Weight(_)) | None => return Ok(None),
        };
        let place = match node.op.view(&view, ty) {
            Some(view) => Place::View(buffer, Box::new(view)),
            // The rearrangement cannot be said in strides of this view: made dense, it can.
            None => {
                let from = self.graph.ty(operand).clone();
                let copied = self.copy(buffer, &view, &from, &node.scope);
                match node.op.view(&View::dense(&from.shape), ty) {
                    Some(view) => Place::View(copied.buffer, Box::new(view)),
                    None => return Ok(None),
                }
            }
        };
        if let Place::View(buffer, _) = &place
            && matches!(self.drafts[buffer.index()].home, Some(Home::State(_)))
        {
            self.state_views.entry(*buffer).or_default().push(result);
        }
        self.places[result.index()] = Some(place);
        self.roles[result.index()] = self.roles[operand.index()];
        Ok(Some(()))
    }

    fn copy(&mut self, buffer: BufferId, view: &View, ty: &Type, scope: &Arc<str>) -> Operand {
        let from = operand(&mut self.sizes, buffer, view, ty, Role::Activation);
        let target = self.draft(None, ty);
        let to = dense_operand(&mut self.sizes, target, ty, Role::Activation);
        self.steps.push(Step {
            action: Action::Copy,
            operands: vec![from],
            results: vec![to.clone()],
            scope: scope.clone(),
            queue: 0,
        });
        to
    }

    fn step_node(&mut self, index: usize, node: &Node) -> Result<()> {
        let result_types = self.graph.result_types(node);
        let mut facts: SmallVec<[OperandFacts; 4]> = SmallVec::new();
        for &value in &node.operands {
            let ty = self.graph.ty(value).clone();
            let strides = match &self.places[value.index()] {
                Some(Place::View(_, view)) if !view.is_dense() => Some(view.strides.to_vec()),
                Some(_) => None,
                None => rlx_ir::bail!(
                    Bug,
                    "{}: operand %{} has no place",
                    node.op.name(),
                    self.graph.value(value).name
                ),
            };
            facts.push(OperandFacts { ty, role: self.roles[value.index()], strides });
        }
        let mut copy_strided = false;
        if let Support::No(_) = self.ask(node, &facts, &result_types) {
            copy_strided = facts.iter().any(|f| f.strides.is_some());
            facts.iter_mut().for_each(|f| f.strides = None);
            if let Support::No(reason) = self.ask(node, &facts, &result_types) {
                let types: Vec<String> = facts.iter().map(|f| f.ty.to_string()).collect();
                rlx_ir::bail!(
                    UnsupportedOnDevice,
                    "{}({}) is not supported: {reason}",
                    node.op.name(),
                    types.join(", ")
                );
            }
        }
        let mut operands = Vec::with_capacity(node.operands.len());
        for (position, &value) in node.operands.iter().enumerate() {
            let ty = self.graph.ty(value).clone();
            let operand = match &self.places[value.index()] {
                Some(Place::Weight(expr)) => {
                    let (expr, op_facts) = (expr.clone(), self.facts(node, &facts, &result_types));
                    let layout = self.target.weight_layout(&op_facts, position);
                    let buffer = self.prepared(expr, layout, &ty);
                    dense_operand(&mut self.sizes, buffer, &ty, Role::Weight)
                }
                Some(Place::Dense(buffer)) => {
                    let role = self.roles[value.index()];
                    dense_operand(&mut self.sizes, *buffer, &ty, role)
                }
                Some(Place::View(buffer, view)) if copy_strided && !view.is_dense() => {
                    let (buffer, view) = (*buffer, view.clone());
                    self.copy(buffer, &view, &ty, &node.scope)
                }
                Some(Place::View(buffer, view)) => {
                    let role = self.roles[value.index()];
                    operand(&mut self.sizes, *buffer, view, &ty, role)
                }
                None => rlx_ir::bail!(Bug, "{}: an operand has no place", node.op.name()),
            };
            operands.push(operand);
        }
        let results = self.results(index, node, &facts, &operands, &result_types);
        self.steps.push(Step {
            action: Action::Op(node.op.clone()),
            operands,
            results,
            scope: node.scope.clone(),
            queue: 0,
        });
        Ok(())
    }

    fn facts<'f>(&'f self, node: &'f Node, operands: &'f [OperandFacts], results: &'f [Type]) -> OpFacts<'f> {
        OpFacts { op: &*node.op, operands, results, symbols: self.graph.symbols() }
    }

    fn ask(&self, node: &Node, operands: &[OperandFacts], results: &[Type]) -> Support {
        self.target.supports(&self.facts(node, operands, results))
    }

    fn prepared(&mut self, expr: Arc<WeightExpr>, layout: Layout, ty: &Type) -> BufferId {
        let key = (Arc::as_ptr(&expr).addr(), layout.clone());
        let weight = PreparedWeight { expr, layout };
        if let Some(buffer) = self.prepared_buffers.get(&key) {
            return *buffer;
        }
        let id = u32::try_from(self.prepare.len()).unwrap_or(u32::MAX);
        self.prepare.push(weight);
        let buffer = self.draft(Some(Home::Weight(id)), ty);
        self.prepared_buffers.insert(key, buffer);
        buffer
    }

    fn results(
        &mut self,
        index: usize,
        node: &Node,
        facts: &[OperandFacts],
        operands: &[Operand],
        types: &[Type],
    ) -> Vec<Operand> {
        let in_place = self.target.in_place(&self.facts(node, facts, types));
        let mut results = Vec::with_capacity(types.len());
        for (i, (&value, ty)) in node.results.iter().zip(types).enumerate() {
            let reused = if i > 0 {
                None
            } else if node.op.writes_state() {
                self.roles[value.index()] = Role::State;
                operands.first().map(|o| o.buffer)
            } else {
                in_place
                    .filter(|&p| self.may_take_over(index, node, operands, p, ty))
                    .map(|p| operands[p].buffer)
            };
            let buffer = reused.unwrap_or_else(|| self.draft(None, ty));
            let role = self.roles[value.index()];
            results.push(dense_operand(&mut self.sizes, buffer, ty, role));
            self.places[value.index()] = Some(Place::Dense(buffer));
        }
        results
    }

    /// Whether result 0 may use the memory of operand `position`: its last use, all of an arena buffer, as large.
    fn may_take_over(
        &self,
        index: usize,
        node: &Node,
        operands: &[Operand],
        position: usize,
        ty: &Type,
    ) -> bool {
        let Some(operand) = operands.get(position) else { return false };
        let draft = &self.drafts[operand.buffer.index()];
        let root = self.roots[node.operands[position].index()];
        let once = operands.iter().filter(|o| o.buffer == operand.buffer).count() == 1;
        draft.home.is_none()
            && once
            && operand.dense
            && self.sizes.dim(operand.offset).as_const() == Some(0)
            && operand.ty.bytes() == draft.bytes
            && ty.bytes() == draft.bytes
            && ty.dtype == operand.ty.dtype
            && self.last_use[root.index()] <= index
    }

    fn finish(mut self) -> Result<Plan> {
        let mut outputs = Vec::new();
        for &value in self.graph.outputs() {
            let ty = self.graph.ty(value).clone();
            let operand = match self.places[value.index()].clone() {
                Some(Place::Weight(expr)) => {
                    let buffer = self.prepared(expr, Layout::ROWS, &ty);
                    dense_operand(&mut self.sizes, buffer, &ty, Role::Weight)
                }
                Some(Place::Dense(buffer)) => {
                    let role = self.roles[value.index()];
                    dense_operand(&mut self.sizes, buffer, &ty, role)
                }
                Some(Place::View(buffer, view)) if !view.is_dense() => {
                    self.copy(buffer, &view, &ty, &"".into())
                }
                Some(Place::View(buffer, view)) => {
                    let role = self.roles[value.index()];
                    operand(&mut self.sizes, buffer, &view, &ty, role)
                }
                None => rlx_ir::bail!(Bug, "output %{} has no place", self.graph.value(value).name),
            };
            outputs.push(operand);
        }
        let (mut regions, region_misses) = regions::find(&self.steps, &outputs, self.drafts.len());
        self.claim(&mut regions, &mut outputs);
        let (buffers, arena) = self.lay_out(&outputs, &regions)?;
        Ok(Plan {
            name: self.graph.name().to_owned(),
            symbols: self.graph.symbols().clone(),
            sizes: self.sizes,
            conditions: self.conditions,
            inputs: self.inputs,
            states: self.states,
            outputs,
            prepare: self.prepare,
            buffers,
            steps: self.steps,
            arena,
            regions,
            region_misses,
        })
    }

    fn claim(&mut self, regions: &mut [PlanRegion], outputs: &mut [Operand]) {
        regions::claim(regions, self.target, &self.steps, &self.sizes, self.graph.symbols());
        let drafts = &mut self.drafts;
        let changed = regions::part_from_inputs(regions, &mut self.steps, outputs, |like| {
            let Draft { home: None, bytes } = &drafts[like.index()] else { return None };
            let bytes = bytes.clone();
            drafts.push(Draft { home: None, bytes });
            Some(BufferId(u32::try_from(drafts.len() - 1).unwrap_or(u32::MAX)))
        });
        if changed {
            regions::update_boundaries(regions, &self.steps, outputs, self.drafts.len());
        }
    }

    /// The most bytes that a buffer of `bytes` takes.
    fn most_bytes(&self, bytes: &Dim) -> Result<u64> {
        let (name, symbols) = (self.graph.name(), self.graph.symbols());
        if let Some(most) = symbols.upper_bound(bytes) {
            // An upper bound is at least 0.
            return Ok(most.unsigned_abs());
        }
        let bounded = |symbol: &Arc<str>| symbols.upper_bound(&Dim::symbol(symbol)).is_some();
        if bytes.symbols().iter().all(bounded) {
            rlx_ir::bail!(
                InvalidArgument,
                "graph @{name}: {bytes} bytes overflow at the bounds of the symbols"
            );
        }
        rlx_ir::bail!(InvalidArgument, "graph @{name}: {bytes} bytes of memory need a bound on each symbol")
    }

    fn lay_out(&mut self, outputs: &[Operand], regions: &[PlanRegion]) -> Result<(Vec<Buffer>, ArenaLayout)> {
        let mut spans: Vec<Option<(usize, usize)>> = vec![None; self.drafts.len()];
        let mut touch = |buffer: BufferId, step: usize| {
            let span = spans[buffer.index()].get_or_insert((step, step));
            *span = (span.0.min(step), span.1.max(step));
        };
        for (index, step) in self.steps.iter().enumerate() {
            step.operands.iter().chain(&step.results).for_each(|o| touch(o.buffer, index));
        }
        outputs.iter().for_each(|o| touch(o.buffer, self.steps.len()));
        for region in regions.iter().filter(|r| r.is_claimed()) {
            region.inputs.iter().for_each(|&buffer| touch(buffer, region.steps.end - 1));
            for output in &region.outputs {
                touch(self.steps[output.step].results[output.index].buffer, region.steps.start);
            }
        }
        let (mut lifetimes, mut owners) = (Vec::new(), Vec::new());
        for (i, draft) in self.drafts.iter().enumerate() {
            if draft.home.is_some() {
                continue;
            }
            let (first, last) = spans[i].unwrap_or((0, 0));
            lifetimes.push(Lifetime { first, last, bytes: self.most_bytes(&draft.bytes)? });
            owners.push(i);
        }
        let place = |e: Error| e.context(format!("graph @{}: memory at the bounds", self.graph.name()));
        let (placed, arena) = lay_out(&lifetimes).map_err(place)?;
        let mut homes: Vec<Option<Home>> = self.drafts.iter().map(|d| d.home).collect();
        for (owner, p) in owners.into_iter().zip(placed) {
            homes[owner] = Some(Home::Arena { offset: p.offset, reserved: p.reserved });
        }
        let buffers = homes.into_iter().zip(&self.drafts).map(|(home, draft)| Buffer {
            home: home.unwrap_or(Home::Arena { offset: 0, reserved: 0 }),
            bytes: self.sizes.intern(&draft.bytes),
        });
        Ok((buffers.collect(), arena))
    }
}
