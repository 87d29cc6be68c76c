//! `fuse_linear`: what follows a product with a weight becomes its epilogue.

use std::sync::Arc;

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::activation::gelu::Gelu;
use rlx_ir::ops::activation::glu::Glu;
use rlx_ir::ops::activation::silu::Silu;
use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::elementwise::unary::{Unary, UnaryKind};
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::{Graph, Node, NodeId, Op, Type, Value};
use smallvec::{SmallVec, smallvec};

use super::{Pass, PassContext};
use crate::rewrite::{Matcher, Numerics, Operand, Outcome, PassReport, Patch, Rule, fuse};
use crate::{Result, Role};

const NAME: &str = "fuse_linear";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

const RULES: &[Rule] = &[Rule {
    name: "linear_epilogue",
    numerics: Numerics::Reassociates,
    doc: "activation(matmul(x, weight) + bias) + residual, or part of it -> linear",
    apply,
}];

/// Fuses epilogues.
///
/// # Errors
/// `Bug` where a patch does not fit.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    fuse(NAME, RULES, graph, cx)
}

/// `activation(x . w^T + bias) + residual`, with the nodes that compute it.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub nodes: SmallVec<[NodeId; 4]>,
    pub x: Value,
    pub w: Value,
    pub bias: Option<Value>,
    pub residual: Option<Value>,
    pub activation: Activation,
}

impl Product {
    /// The node as a product by itself: `matmul` with a weight, or `linear`.
    pub(super) fn of_node(cx: &Matcher<'_>, id: NodeId) -> Option<Self> {
        let node = cx.node(id);
        let plain = |activation| Self {
            nodes: smallvec![id],
            x: node.operands[0],
            w: node.operands[1],
            bias: None,
            residual: None,
            activation,
        };
        if let Some(MatMul { transpose_b: true }) = node.op.downcast() {
            let w = node.operands[1];
            let fits = cx.ty(w).rank() == 2 && cx.role(w) == Role::Weight;
            return fits.then(|| plain(Activation::None));
        }
        let linear: &Linear = node.op.downcast()?;
        let (bias, residual) = linear.operand_positions();
        let at = |i: Option<usize>| i.map(|i| node.operands[i]);
        Some(Self { bias: at(bias), residual: at(residual), ..plain(linear.activation) })
    }

    fn op(&self) -> Linear {
        Linear { bias: self.bias.is_some(), residual: self.residual.is_some(), activation: self.activation }
    }

    fn operands(&self) -> Vec<Value> {
        [self.x, self.w].into_iter().chain(self.bias).chain(self.residual).collect()
    }
}

/// The function that `op` applies to its operand, if `linear` has it.
pub(crate) fn activation_of(op: &dyn Op) -> Option<Activation> {
    if let Some(gelu) = op.downcast::<Gelu>() {
        return Some(gelu.activation());
    }
    if op.is::<Silu>() {
        return Some(Activation::Silu);
    }
    match op.downcast::<Unary>()?.kind {
        UnaryKind::Relu => Some(Activation::Relu),
        UnaryKind::Tanh => Some(Activation::Tanh),
        UnaryKind::Sigmoid => Some(Activation::Sigmoid),
        _ => None,
    }
}

/// A product, its bias, its activation and its residual: each is there once.
const MOST_NODES: usize = 4;

/// The longest product that ends at node `id`.
fn product(cx: &Matcher<'_>, id: NodeId) -> Option<Product> {
    product_of(cx, id, MOST_NODES)
}

/// The longest product of at most `most` nodes that ends at node `id`.
fn product_of(cx: &Matcher<'_>, id: NodeId, most: usize) -> Option<Product> {
    let node = cx.node(id);
    if let Some(product) = Product::of_node(cx, id) {
        return Some(product);
    }
    let most = most.checked_sub(1).filter(|&m| m > 0)?;
    // What is inside has no other reader, since it vanishes.
    let inner = |value: Value| {
        let (inner, _) = cx.producer(value)?;
        if cx.single_use(value) { product_of(cx, inner, most) } else { None }
    };
    if let Some(activation) = activation_of(&*node.op) {
        let mut p = inner(node.operands[0])?;
        if p.activation != Activation::None || p.residual.is_some() {
            return None;
        }
        p.activation = activation;
        p.nodes.push(id);
        return Some(p);
    }
    let Some(Binary { kind: BinaryKind::Add }) = node.op.downcast() else { return None };
    for side in [0, 1] {
        let (value, other) = (node.operands[side], node.operands[1 - side]);
        let Some(mut p) = inner(value) else { continue };
        if p.residual.is_some() || cx.ty(value) != cx.ty(node.results[0]) {
            continue;
        }
        let is_row =
            cx.ty(other).shape.dims() == &cx.ty(p.w).shape.dims()[..1] && cx.role(other) == Role::Weight;
        let open = p.activation == Activation::None && p.bias.is_none();
        if is_row && open {
            p.bias = Some(other);
        } else if cx.ty(other) == cx.ty(value) {
            p.residual = Some(other);
        } else {
            continue;
        }
        p.nodes.push(id);
        return Some(p);
    }
    None
}

fn apply(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let node = cx.node(id);
    let Some(p) = product(cx, id) else { return near_miss(cx, node) };
    if p.nodes.len() < 2 {
        return Outcome::NoMatch;
    }
    if let Some(up) = gates(cx, node, &p) {
        return Outcome::NearMiss(format!("it gates %{up}, with which it can be one product"));
    }
    let (op, operands) = (p.op(), p.operands());
    let typed: Vec<Operand> = operands.iter().map(|&v| v.into()).collect();
    if let Err(reason) = cx.check_replaces(&op, &typed, &node.results) {
        return Outcome::NearMiss(reason);
    }
    Outcome::Patch(Patch::new(p.nodes.into_vec(), operands, node.results.to_vec(), move |b, x| {
        Ok(b.emit(op, x)?)
    }))
}

/// The product that the activation at the end of `p` is multiplied with, if both can become one gated unit. That is better
/// than an epilogue: see `fuse_parallel`.
fn gates(cx: &Matcher<'_>, end: &Node, p: &Product) -> Option<Arc<str>> {
    let activation = activation_of(&*end.op)?;
    let [user] = cx.users(end.results[0]) else { return None };
    let (mul, Binary { kind: BinaryKind::Mul }) = cx.node_as::<Binary>(*user)? else { return None };
    let up = mul.operands.iter().copied().find(|&v| v != end.results[0])?;
    let (id, _) = cx.producer(up)?;
    let other = product(cx, id)?;
    let alike = other.x == p.x
        && cx.ty(other.w) == cx.ty(p.w)
        && other.bias.map(|b| cx.ty(b)) == p.bias.map(|b| cx.ty(b))
        && other.activation == Activation::None
        && other.residual.is_none();
    let mut dims = cx.ty(up).shape.dims().to_vec();
    if let Some(last) = dims.last_mut() {
        *last = last.clone() * 2.into();
    }
    let joint = Operand::New(Type::new(cx.ty(up).dtype, dims), Role::Activation);
    let fits = alike && cx.check(&Glu { activation }, &[joint]).is_ok();
    fits.then(|| cx.graph().value(up).name.clone())
}

/// An epilogue of a product that others read too, or of one that has an epilogue already.
fn near_miss(cx: &Matcher<'_>, node: &Node) -> Outcome {
    let is_add = matches!(node.op.downcast(), Some(Binary { kind: BinaryKind::Add }));
    if !is_add && activation_of(&*node.op).is_none() {
        return Outcome::NoMatch;
    }
    for &value in &node.operands {
        let Some((id, _)) = cx.producer(value) else { continue };
        if Product::of_node(cx, id).is_none() {
            continue;
        }
        let name = &cx.graph().value(value).name;
        if !cx.single_use(value) {
            return Outcome::NearMiss(format!("%{name} is read elsewhere too"));
        }
        if is_add {
            let other: Vec<String> =
                node.operands.iter().filter(|v| **v != value).map(|&v| cx.ty(v).to_string()).collect();
            return Outcome::NearMiss(format!(
                "{} is neither a bias nor a residual of %{name}: {}",
                other.join(", "),
                cx.ty(value)
            ));
        }
        return Outcome::NearMiss(format!("%{name} has an epilogue already"));
    }
    Outcome::NoMatch
}
