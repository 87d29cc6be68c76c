//! `fuse_parallel`: products of one activation with several weights become one product with the weights stacked, as for
//! queries, keys and values, or gate and up. The weights are stacked once, at load.

use std::sync::Arc;

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::activation::glu::Glu;
use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::shape::slice::Slice;
use rlx_ir::{Dim, Graph, NodeId, Shape, Type, Value};

use super::fuse_linear::{Product, activation_of};
use super::{Pass, PassContext};
use crate::rewrite::{Matcher, Numerics, Operand, Outcome, PassReport, Patch, Rule, fuse};
use crate::{Result, Role};

const NAME: &str = "fuse_parallel";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

const RULES: &[Rule] = &[
    Rule {
        name: "stack_products",
        numerics: Numerics::Exact,
        doc: "products of one x with several weights of one type -> slices of one product with the weights stacked",
        apply: stack_products,
    },
    Rule {
        name: "glu_of_halves",
        numerics: Numerics::Reassociates,
        doc: "activation(first half of x) * second half of x -> glu(x)",
        apply: glu_of_halves,
    },
];

/// Stacks products, and finds gated units over them.
///
/// # Errors
/// `Bug` where a patch does not fit.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    fuse(NAME, RULES, graph, cx)
}

fn name(cx: &Matcher<'_>, value: Value) -> Arc<str> {
    cx.graph().value(value).name.clone()
}

/// A product that can be stacked, or why not. `None` where `id` is no product of `x`.
fn part(cx: &Matcher<'_>, id: NodeId, x: Value) -> Option<Result<Product, String>> {
    let p = Product::of_node(cx, id)?;
    if p.x != x || p.w == x {
        return None;
    }
    Some(if p.activation != Activation::None || p.residual.is_some() {
        Err(format!("%{} has an epilogue", name(cx, cx.node(id).results[0])))
    } else if let Some(v) = [Some(p.w), p.bias].into_iter().flatten().find(|&v| cx.role(v) != Role::Weight) {
        Err(format!("%{} is no weight", name(cx, v)))
    } else if let Some(v) = [Some(p.w), p.bias].into_iter().flatten().find(|&v| !cx.single_use(v)) {
        Err(format!("%{} is read elsewhere too, and would be in memory twice", name(cx, v)))
    } else {
        Ok(p)
    })
}

/// What parts of one stack have in common.
fn kind(cx: &Matcher<'_>, p: &Product) -> (rlx_ir::DType, Option<rlx_ir::DType>) {
    (cx.ty(p.w).dtype, p.bias.map(|b| cx.ty(b).dtype))
}

fn stack_products(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some(own) = Product::of_node(cx, id) else { return Outcome::NoMatch };
    if cx.users(own.x).len() < 2 {
        return Outcome::NoMatch;
    }
    let mut siblings = cx.users(own.x).to_vec();
    siblings.dedup();
    let (products, parts): (Vec<NodeId>, Vec<_>) =
        siblings.iter().filter_map(|&s| Some((s, part(cx, s, own.x)?))).unzip();
    let kinds = |p: &Result<Product, String>| p.as_ref().ok().map(|p| kind(cx, p));
    let own_part = products.iter().position(|&s| s == id).map(|at| &parts[at]);
    if parts.len() < 2 {
        return Outcome::NoMatch;
    }
    let own_kind = match own_part {
        Some(Ok(p)) => kind(cx, p),
        // The last of several is where the pattern ends.
        Some(Err(reason)) if products.iter().max() == Some(&id) => return Outcome::NearMiss(reason.clone()),
        _ => return Outcome::NoMatch,
    };
    let stacked: Vec<Product> =
        parts.iter().filter(|p| kinds(p) == Some(own_kind)).filter_map(|p| p.clone().ok()).collect();
    if stacked.last().is_none_or(|p| p.nodes[0] != id) {
        return Outcome::NoMatch;
    }
    if stacked.len() < 2 {
        let others = parts.iter().find_map(|p| p.as_ref().err().cloned());
        return Outcome::NearMiss(others.unwrap_or_else(|| {
            let types: Vec<String> =
                parts.iter().filter_map(|p| p.as_ref().ok()).map(|p| cx.ty(p.w).to_string()).collect();
            format!(
                "the products of %{} have weights of several types: {}",
                name(cx, own.x),
                types.join(", ")
            )
        }));
    }
    stack(cx, &stacked)
}

fn stack(cx: &Matcher<'_>, parts: &[Product]) -> Outcome {
    let (x, has_bias) = (parts[0].x, parts[0].bias.is_some());
    let rows: Vec<Dim> = parts.iter().map(|p| cx.ty(p.w).shape[0].clone()).collect();
    let total = rows.iter().cloned().fold(Dim::constant(0), |a, b| a + b);
    let w = cx.ty(parts[0].w);
    let joint_w = Type::new(w.dtype, [total.clone(), w.shape[1].clone()]);
    let mut operands = vec![Operand::Value(x), Operand::New(joint_w, Role::Weight)];
    if let Some(bias) = parts[0].bias {
        operands.push(Operand::New(Type::new(cx.ty(bias).dtype, Shape::from([total])), Role::Weight));
    }
    let op = Linear { bias: has_bias, ..Linear::default() };
    let joint = match cx.check(&op, &operands) {
        Ok(types) => types,
        Err(reason) => return Outcome::NearMiss(reason),
    };
    let axis = joint[0].rank() - 1;
    let nodes: Vec<NodeId> = parts.iter().map(|p| p.nodes[0]).collect();
    let results: Vec<Value> = nodes.iter().map(|&n| cx.node(n).results[0]).collect();
    for (&result, len) in results.iter().zip(&rows) {
        let dims: Vec<Dim> = joint[0].shape.dims()[..axis].iter().chain([len]).cloned().collect();
        if let Err(reason) = cx.same_type(&Type::new(joint[0].dtype, dims), result) {
            return Outcome::NearMiss(reason);
        }
    }
    let reads: Vec<Value> = std::iter::once(x)
        .chain(parts.iter().map(|p| p.w))
        .chain(parts.iter().filter_map(|p| p.bias))
        .collect();
    Outcome::Patch(Patch::new(nodes, reads, results, move |b, v| {
        let w = b.concat(&v[1..=rows.len()], 0)?;
        let bias = if has_bias { Some(b.concat(&v[1 + rows.len()..], 0)?) } else { None };
        let joint = b.linear(v[0], w, op, bias, None)?;
        let mut start = Dim::constant(0);
        let mut slices = Vec::new();
        for len in rows {
            let axis = i64::try_from(axis).unwrap_or(0);
            slices
                .push(b.emit_one(Slice { axis, start: start.clone(), len: len.clone(), step: 1 }, &[joint])?);
            start = start + len;
        }
        Ok(slices)
    }))
}

/// The whole that `value` is a part of, and where that part starts along the last axis.
fn part_of_last_axis(cx: &Matcher<'_>, value: Value) -> Option<(Value, Dim)> {
    let (_, node, slice) = cx.producer_as::<Slice>(value)?;
    let whole = node.operands[0];
    let last = i64::try_from(cx.ty(whole).rank()).ok()? - 1;
    let on_last = slice.axis == last || slice.axis == -1;
    (on_last && slice.step == 1).then(|| (whole, slice.start.clone()))
}

fn glu_of_halves(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some((node, Binary { kind: BinaryKind::Mul })) = cx.node_as::<Binary>(id) else {
        return Outcome::NoMatch;
    };
    for side in [0, 1] {
        let (gated, up) = (node.operands[side], node.operands[1 - side]);
        let Some((act_id, act)) = cx.producer(gated) else { continue };
        let Some(activation) = activation_of(&*act.op) else { continue };
        let (Some((whole, first)), Some((other, second))) =
            (part_of_last_axis(cx, act.operands[0]), part_of_last_axis(cx, up))
        else {
            continue;
        };
        if whole != other || cx.ty(gated) != cx.ty(up) {
            continue;
        }
        let (Some(half), Some(all)) = (cx.ty(up).shape.last(), cx.ty(whole).shape.last()) else { continue };
        if first != Dim::constant(0) || second != *half || half.clone() * 2.into() != *all {
            return Outcome::NearMiss(format!("the gate is not the first half of %{}", name(cx, whole)));
        }
        if !cx.single_use(gated) {
            return Outcome::NearMiss(format!("%{} is read elsewhere too", name(cx, gated)));
        }
        let op = Glu { activation };
        if let Err(reason) = cx.check_replaces(&op, &[whole.into()], &node.results) {
            return Outcome::NearMiss(reason);
        }
        return Outcome::Patch(Patch::new([act_id, id], [whole], node.results.to_vec(), move |b, x| {
            Ok(b.emit(op, x)?)
        }));
    }
    Outcome::NoMatch
}
