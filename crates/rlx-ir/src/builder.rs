//! Building graphs: every method infers the result's dtype and shape, or says why the operands do not fit.
//!
//! One method per op lives beside the op, in `ops/<family>/<op>.rs`.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::dim::Dim;
use crate::error::{Error, Result};
use crate::graph::{Def, Graph, GraphMark, MAX_VALUES, Node, NodeId, Types, ValueInfo, Values, WeightInit};
use crate::op::{Op, OpRef};
use crate::tensor::Tensor;
use crate::types::{Shape, Type};

pub use crate::graph::Value;

/// Builds one [`Graph`].
///
/// ```
/// use rlx_ir::{Builder, DType};
/// let mut b = Builder::new("ffn");
/// let n = b.symbol("N", 8192);
/// let x = b.input("x", DType::F32, [n, 384.into()])?;
/// let w = b.weight("ffn.w", DType::F32, [1536, 384])?;
/// let y = b.matmul_transposed(x, w)?;
/// let graph = b.finish(&[y])?;
/// assert_eq!(graph.ty(y).to_string(), "f32[N, 1536]");
/// # Ok::<(), rlx_ir::Error>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    graph: Graph,
    names: FxHashSet<Arc<str>>,
    /// Names of inputs, weights and states, each kind by itself.
    declared: FxHashSet<(std::mem::Discriminant<Def>, String)>,
    scope: Arc<str>,
}

impl Builder {
    /// An empty graph called `name`, which may be any text.
    pub fn new(name: &str) -> Self {
        let graph = Graph { mark: GraphMark::new(), name: name.to_owned(), ..Graph::default() };
        Self { graph, names: FxHashSet::default(), declared: FxHashSet::default(), scope: "".into() }
    }

    /// An empty graph with the name and symbols of `other`.
    pub fn like(other: &Graph) -> Self {
        let mut b = Self::new(&other.name);
        b.graph.symbols = other.symbols.clone();
        b.graph.values.reserve(other.values.len());
        b.graph.nodes.reserve(other.nodes.len());
        b.names.reserve(other.values.len());
        b
    }

    /// Declares the symbol `name` with its largest size. The name begins with an ASCII letter or `_`, goes on with these, digits and
    /// `.`, and is none of `inf`, `nan` and `graph`: [`finish`](Self::finish) refuses others, which the text form cannot hold.
    pub fn symbol(&mut self, name: &str, max: usize) -> Dim {
        self.graph.symbols.declare(name, Some(i64::try_from(max).unwrap_or(i64::MAX)))
    }

    /// Declares the symbol `name` without a bound: such a graph can be interpreted, but not planned.
    pub fn unbounded_symbol(&mut self, name: &str) -> Dim {
        self.graph.symbols.declare(name, None)
    }

    /// Bounds a product of symbols, as `B * S <= 16384`.
    pub fn bound(&mut self, of: Dim, max: usize) {
        self.graph.symbols.bound(of, i64::try_from(max).unwrap_or(i64::MAX));
    }

    /// Nodes emitted from here on belong to this part of the model.
    pub fn set_scope(&mut self, scope: impl Into<Arc<str>>) {
        self.scope = scope.into();
    }

    /// The part of the model that nodes are emitted into now.
    pub fn scope(&self) -> Arc<str> {
        self.scope.clone()
    }

    /// The graph as it is so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The type of `value`, which is one of this builder.
    ///
    /// # Panics
    /// Where `value` is of another graph and this one has no value at its index; see [`Graph::contains`].
    pub fn ty(&self, value: Value) -> &Type {
        self.graph.ty(value)
    }

    /// The shape of `value`, which is one of this builder.
    ///
    /// # Panics
    /// Where `value` is of another graph and this one has no value at its index; see [`Graph::contains`].
    pub fn shape(&self, value: Value) -> &Shape {
        &self.graph.ty(value).shape
    }

    /// Names `value` in the text form; a number is added where the name is taken.
    ///
    /// # Errors
    /// `InvalidArgument` for a value of another graph.
    pub fn name(&mut self, value: Value, name: &str) -> Result<()> {
        self.forget_name(value)?;
        self.graph.values[value.index()].name = self.unique(name);
        Ok(())
    }

    /// Names `value` as a value of another graph is named; a number is added where the name is taken.
    ///
    /// # Errors
    /// `InvalidArgument` for a value of another graph.
    pub fn name_like(&mut self, value: Value, name: &Arc<str>) -> Result<()> {
        self.forget_name(value)?;
        let name = if self.names.insert(name.clone()) { name.clone() } else { self.unique(name) };
        self.graph.values[value.index()].name = name;
        Ok(())
    }

    fn forget_name(&mut self, value: Value) -> Result<()> {
        if !self.graph.contains(value) {
            crate::bail!(InvalidArgument, "a value of another graph cannot be named");
        }
        self.names.remove(&self.graph.values[value.index()].name);
        Ok(())
    }

    /// All operands are values of this graph.
    fn check_operands(&self, op: &str, operands: &[Value]) -> Result<()> {
        match operands.iter().position(|v| !self.graph.contains(*v)) {
            None => Ok(()),
            Some(i) => crate::bail!(
                InvalidArgument,
                "{op}: operand {i}: expected a value of this builder, got one of another graph"
            ),
        }
    }

    fn unique(&mut self, wanted: &str) -> Arc<str> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let mut digits = [0; 20];
        let mut name: Arc<str> = if wanted.is_empty() {
            decimal(self.graph.values.len(), &mut digits).into()
        } else if wanted.chars().all(fits) {
            wanted.into()
        } else {
            wanted.chars().map(|c| if fits(c) { c } else { '_' }).collect::<String>().into()
        };
        if self.names.insert(name.clone()) {
            return name;
        }
        let base = name.clone();
        let mut n = 1;
        while !self.names.insert(name.clone()) {
            n += 1;
            name = format!("{base}_{n}").into();
        }
        name
    }

    fn push(&mut self, ty: Type, def: Def, name: &str) -> Value {
        let name = self.unique(name);
        let value = Value::new(self.graph.values.len(), self.graph.mark);
        self.graph.values.push(ValueInfo { ty, def, name });
        value
    }

    fn declare(&mut self, ty: Type, def: Def, kind: &str, name: &str) -> Result<Value> {
        if !self.declared.insert((std::mem::discriminant(&def), name.to_owned())) {
            crate::bail!(InvalidArgument, "{kind} {name:?} is declared twice");
        }
        check_type(&ty).map_err(|e| e.context(format!("{kind} {name:?}")))?;
        Ok(self.push(ty, def, name))
    }

    /// Declares an input.
    ///
    /// # Errors
    /// `InvalidArgument` where the name is taken or blocks do not divide the last axis.
    pub fn input(&mut self, name: &str, dtype: crate::DType, shape: impl Into<Shape>) -> Result<Value> {
        self.declare(Type::new(dtype, shape), Def::Input(name.into()), "input", name)
    }

    /// Declares a weight: its bytes come from outside, by name.
    ///
    /// # Errors
    /// `InvalidArgument` where the name is taken or blocks do not divide the last axis.
    pub fn weight(&mut self, name: &str, dtype: crate::DType, shape: impl Into<Shape>) -> Result<Value> {
        self.weight_with(name, Type::new(dtype, shape), WeightInit::External)
    }

    /// Declares a weight with values for tests.
    ///
    /// # Errors
    /// `InvalidArgument` where the name is taken, blocks do not divide the last axis, or inline values have another type.
    pub fn weight_with(&mut self, name: &str, ty: Type, init: WeightInit) -> Result<Value> {
        if let WeightInit::Inline(t) = &init {
            check_tensor(&ty, t)?;
        }
        if let Some(dim) = ty.shape.dims().iter().find(|d| d.as_usize().is_none()) {
            crate::bail!(InvalidArgument, "weight {name:?}: size {dim} is no constant");
        }
        self.declare(ty, Def::Weight { name: name.into(), init }, "weight", name)
    }

    /// Declares a state.
    ///
    /// # Errors
    /// `InvalidArgument` where the name is taken.
    pub fn state(&mut self, name: &str, dtype: crate::DType, shape: impl Into<Shape>) -> Result<Value> {
        self.declare(Type::new(dtype, shape), Def::State(name.into()), "state", name)
    }

    /// A constant in the graph itself.
    pub fn constant(&mut self, tensor: Tensor) -> Value {
        self.shared_constant(Arc::new(tensor))
    }

    /// A constant that is shared with another graph.
    pub fn shared_constant(&mut self, tensor: Arc<Tensor>) -> Value {
        let ty = Type::new(tensor.dtype(), tensor.shape());
        self.push(ty, Def::Const(tensor), "c")
    }

    /// A scalar of type `dtype`, rounded once.
    ///
    /// # Errors
    /// `InvalidArgument` where `dtype` is a block type.
    pub fn scalar(&mut self, dtype: crate::DType, value: f64) -> Result<Value> {
        let tensor = Tensor::from_f64(crate::TensorType::new(dtype, []), &[value])?;
        Ok(self.constant(tensor))
    }

    /// Copies a declaration (input, weight, constant or state) of another graph with its name.
    ///
    /// # Errors
    /// `Bug` where the value is a result.
    pub fn declare_like(&mut self, info: &ValueInfo) -> Result<Value> {
        if matches!(info.def, Def::Result { .. }) {
            crate::bail!(Bug, "%{} is no declaration", info.name);
        }
        Ok(self.push_copy(info.ty.clone(), info.def.clone(), &info.name))
    }

    /// As `push`, with a name of another graph: it is well formed, and taken over where it is free.
    fn push_copy(&mut self, ty: Type, def: Def, name: &Arc<str>) -> Value {
        let name = if self.names.insert(name.clone()) { name.clone() } else { self.unique(name) };
        let value = Value::new(self.graph.values.len(), self.graph.mark);
        self.graph.values.push(ValueInfo { ty, def, name });
        value
    }

    /// Applies `op` and returns its results.
    ///
    /// # Errors
    /// `InvalidArgument` naming op, operand, what was expected and what came.
    pub fn emit(&mut self, op: impl Op, operands: &[Value]) -> Result<Vec<Value>> {
        self.emit_ref(Arc::new(op), operands)
    }

    /// Applies `op`, which has one result.
    ///
    /// # Errors
    /// As [`emit`](Self::emit); `Bug` where the op has another number of results.
    pub fn emit_one(&mut self, op: impl Op, operands: &[Value]) -> Result<Value> {
        self.emit_one_ref(Arc::new(op), operands)
    }

    /// Applies a shared `op`, which has one result.
    ///
    /// # Errors
    /// As [`emit`](Self::emit); `Bug` where the op has another number of results.
    pub fn emit_one_ref(&mut self, op: OpRef, operands: &[Value]) -> Result<Value> {
        match self.emit_ref(op, operands)?.as_slice() {
            [one] => Ok(*one),
            many => {
                let name = self.graph.nodes.last().map_or("", |n| n.op.name());
                crate::bail!(Bug, "{name} has {} results, not one", many.len())
            }
        }
    }

    /// Applies a shared `op` and returns its results.
    ///
    /// # Errors
    /// `InvalidArgument` naming op, operand, what was expected and what came.
    pub fn emit_ref(&mut self, op: OpRef, operands: &[Value]) -> Result<Vec<Value>> {
        self.check_operands(op.name(), operands)?;
        let types: Types = operands.iter().map(|&v| self.ty(v).clone()).collect();
        let place = || {
            let list: Vec<String> =
                operands.iter().map(|&v| format!("%{}: {}", self.graph.value(v).name, self.ty(v))).collect();
            format!("{}({})", op.name(), list.join(", "))
        };
        let results = op.infer(&types).map_err(|e| e.context(place()))?;
        for ty in &results {
            check_type(ty).map_err(|e| e.context(place()))?;
        }
        let node = NodeId(u32::try_from(self.graph.nodes.len()).unwrap_or(u32::MAX));
        let results: Vec<Value> =
            (0..).zip(results).map(|(index, ty)| self.push(ty, Def::Result { node, index }, "")).collect();
        self.graph.nodes.push(Node {
            op,
            operands: operands.into(),
            results: results.as_slice().into(),
            scope: self.scope.clone(),
        });
        Ok(results)
    }

    /// Copies a node of `from` with its types, names and scope: for passes, which leave most nodes as they are. `operands`
    /// have the types of the node's own; nothing is inferred again.
    ///
    /// # Errors
    /// `InvalidArgument` naming op and operand where one is a value of another graph.
    pub fn copy_node(&mut self, from: &Graph, node: &Node, operands: Values) -> Result<Values> {
        self.check_operands(node.op.name(), &operands)?;
        let id = NodeId(u32::try_from(self.graph.nodes.len()).unwrap_or(u32::MAX));
        let mut results = Values::new();
        for (index, &value) in (0..).zip(&node.results) {
            let info = from.value(value);
            results.push(self.push_copy(info.ty.clone(), Def::Result { node: id, index }, &info.name));
        }
        let (op, scope) = (node.op.clone(), node.scope.clone());
        self.graph.nodes.push(Node { op, operands, results: results.clone(), scope });
        Ok(results)
    }

    /// Ends the graph, which returns `outputs`.
    ///
    /// # Errors
    /// `InvalidArgument` where an output is a value of another graph, where there are more than a million values, or naming an
    /// invariant of [`verify`](crate::verify) which does not hold.
    pub fn finish(self, outputs: &[Value]) -> Result<Graph> {
        let mut graph = self.finish_unverified(outputs)?;
        // What is wrong came from the caller, so it is not a fault of RLX.
        crate::verify::verify(&graph)
            .map_err(|e| Error::new(crate::ErrorKind::InvalidArgument, e.message()))?;
        graph.verified = true;
        Ok(graph)
    }

    /// As [`finish`](Self::finish), for passes: the pipeline decides when the graph is verified.
    ///
    /// # Errors
    /// `InvalidArgument` where an output is a value of another graph, or there are more than a million values.
    pub fn finish_unverified(mut self, outputs: &[Value]) -> Result<Graph> {
        // Beyond that, values cannot be told apart.
        if self.graph.values.len() > MAX_VALUES {
            crate::bail!(InvalidArgument, "a graph of more than {MAX_VALUES} values");
        }
        if let Some(i) = outputs.iter().position(|v| !self.graph.contains(*v)) {
            crate::bail!(
                InvalidArgument,
                "output {i}: expected a value of this builder, got one of another graph"
            );
        }
        self.graph.outputs = outputs.to_vec();
        Ok(self.graph)
    }
}

/// `n` in decimal digits, which are written into `digits`: names of values are numbers mostly.
fn decimal(mut n: usize, digits: &mut [u8; 20]) -> &str {
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    std::str::from_utf8(&digits[start..]).unwrap_or_default()
}

fn check_tensor(ty: &Type, tensor: &Tensor) -> Result<()> {
    let found = Type::new(tensor.dtype(), tensor.shape());
    if found != *ty {
        crate::bail!(InvalidArgument, "declared as {ty}, but the values are {found}");
    }
    Ok(())
}

/// The most terms that the number of elements has when it is written out.
const MAX_SHAPE_TERMS: usize = 4096;

/// No size is negative, the number of elements can be written out and does not overflow, and blocks divide a constant last axis.
pub(crate) fn check_type(ty: &Type) -> Result<()> {
    let terms = ty.shape.dims().iter().fold(1usize, |all, dim| all.saturating_mul(dim.num_terms()));
    if terms > MAX_SHAPE_TERMS {
        crate::bail!(
            InvalidArgument,
            "the sizes of rank {} are too long: their product has more than {MAX_SHAPE_TERMS} terms",
            ty.rank()
        );
    }
    let mut bytes = Some(ty.dtype.block_bytes());
    for size in ty.shape.dims().iter().filter_map(Dim::as_const) {
        let Ok(size) = usize::try_from(size) else {
            crate::bail!(InvalidArgument, "{ty}: a size is negative");
        };
        bytes = bytes.and_then(|b| b.checked_mul(size.max(1))).filter(|b| i64::try_from(*b).is_ok());
    }
    if bytes.is_none() {
        crate::bail!(InvalidArgument, "{ty}: its sizes are too large: their product overflows");
    }
    if !ty.dtype.is_block() {
        return Ok(());
    }
    let block = ty.dtype.block_elems();
    match ty.shape.last().map(Dim::as_usize) {
        Some(Some(last)) if last.is_multiple_of(block) => Ok(()),
        _ => crate::bail!(InvalidArgument, "{ty}: the last axis must be a constant multiple of {block}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, ErrorKind};

    /// A builder with one value, and values that are none of its own: one at the same index, and one beyond all of them.
    fn with_foreign() -> (Builder, Value, [Value; 2]) {
        let mut other = Builder::new("other");
        let same_index = other.input("a", DType::F32, [2]).unwrap();
        let beyond = other.input("b", DType::F32, [2]).unwrap();
        let mut b = Builder::new("g");
        let own = b.input("x", DType::F32, [2]).unwrap();
        (b, own, [same_index, beyond])
    }

    fn assert_refused<T: std::fmt::Debug>(result: Result<T>, place: &str) {
        let e = result.unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains(place), "{e}");
    }

    #[test]
    fn sizes_that_are_negative_or_overflow_are_refused_where_they_are_made() {
        let mut b = Builder::new("g");
        let n = b.symbol("N", 8);
        assert_refused(b.input("x", DType::F32, [n.clone(), Dim::constant(-1)]), "negative");
        let large = Dim::constant(1 << 32);
        assert_refused(b.input("y", DType::F32, [large.clone(), n, large.clone()]), "overflows");
        let one = b.input("z", DType::F32, [1]).unwrap();
        assert_refused(b.broadcast(one, [large.clone(), large]), "broadcast");
    }

    #[test]
    fn a_value_of_another_builder_is_refused_everywhere() {
        let (mut b, own, foreign) = with_foreign();
        for value in foreign {
            assert_refused(b.add(own, value), "add: operand 1");
            assert_refused(b.neg(value), "neg: operand 0");
            assert_refused(b.kv_write(value, own, own), "kv_write: operand 0");
            assert_refused(b.name(value, "y"), "cannot be named");
            assert_refused(b.name_like(value, &"y".into()), "cannot be named");
            let (b, own, _) = with_foreign();
            assert_refused(b.finish(&[own, value]), "output 1");
        }
        assert_eq!(b.graph().nodes().len(), 0);
        let y = b.neg(own).unwrap();
        b.finish(&[y]).unwrap();
    }

    #[test]
    fn a_copied_node_reads_values_of_the_copy() {
        let (mut b, own, _) = with_foreign();
        let y = b.neg(own).unwrap();
        let from = b.finish(&[y]).unwrap();
        let mut copy = Builder::like(&from);
        let x = copy.declare_like(from.value(own)).unwrap();
        let node = &from.nodes()[0];
        assert_refused(copy.copy_node(&from, node, node.operands.clone()), "neg: operand 0");
        let results = copy.copy_node(&from, node, [x].into_iter().collect()).unwrap();
        copy.finish(&results).unwrap();
    }

    /// Copies of a graph have its values; a `Value` prints alike, whichever graph it is of.
    #[test]
    fn a_copy_of_a_graph_has_its_values() {
        let (b, own, foreign) = with_foreign();
        let copy = b.graph().clone();
        assert!(copy.contains(own) && !copy.contains(foreign[0]));
        assert_eq!(format!("{own:?}"), format!("{:?}", foreign[0]));
        assert_ne!(own, foreign[0]);
    }
}
