//! `legalise`: composites that the target refuses are decomposed, until it refuses none; weights in block types that it
//! has no kernel for are decoded.
//!
//! Work on weights alone is done once at load, and a view is no work at all: the target is not asked about either.

use rlx_ir::op::Tier;
use rlx_ir::{DType, Graph, Node, NodeId, Type, Value, View};

use super::{Pass, PassContext};
use crate::precision::Compute;
use crate::rewrite::{Matcher, Numerics, Operand, Outcome, PassReport, Patch, Rule, rewrite};
use crate::{Error, Result, Role, Support};

const NAME: &str = "legalise";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

const RULES: &[Rule] = &[
    Rule {
        name: "decode_weight_to_half",
        numerics: Numerics::LowersPrecision,
        doc: "an op of f16 or bf16, in which the policy computes, that the target refuses for a weight in a block type or bf16 -> the same on the weight decoded to that type once at load",
        apply: decode_weight_to_half,
    },
    Rule {
        name: "decode_weight",
        numerics: Numerics::Exact,
        doc: "an op that the target refuses for a weight in a block type or bf16 -> the same on the weight decoded to f32 once at load",
        apply: decode_weight,
    },
    Rule {
        name: "decompose",
        numerics: Numerics::Reassociates,
        doc: "a composite that the target refuses -> what its definition says in other ops",
        apply: decompose,
    },
];

/// Decomposes what the target refuses.
///
/// # Errors
/// `UnsupportedOnDevice` naming op, types and the target's reason, where it refuses an op that does not decompose.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    let (graph, report) = rewrite(NAME, RULES, graph, cx)?;
    let matcher = Matcher::new(&graph, cx);
    for node in graph.nodes() {
        if let Some(reason) = refused(&matcher, node) {
            let types: Vec<String> = graph.operand_types(node).iter().map(ToString::to_string).collect();
            rlx_ir::bail!(
                UnsupportedOnDevice,
                "%{} = {}({}): the device does not run this: {reason}",
                node.results.first().map_or("", |&v| &graph.value(v).name),
                node.op.name(),
                types.join(", ")
            );
        }
    }
    Ok((graph, report))
}

/// Why the target does not run `node`, if it must and does not.
fn refused(cx: &Matcher<'_>, node: &Node) -> Option<String> {
    let prepared = node.results.iter().all(|&v| cx.role(v) == Role::Weight);
    if prepared || is_view(cx, node) {
        return None;
    }
    match cx.supports(node) {
        Support::Yes => None,
        Support::No(reason) => Some(reason),
    }
}

fn is_view(cx: &Matcher<'_>, node: &Node) -> bool {
    match (node.operands.first(), node.results.first()) {
        (Some(&x), Some(&y)) if !cx.ty(y).dtype.is_block() => {
            node.op.view(&View::dense(&cx.ty(x).shape), cx.ty(y)).is_some()
        }
        _ => false,
    }
}

fn decode_weight(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    decode(cx, id, |_| Some(DType::F32))
}

fn decode_weight_to_half(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let half = match cx.policy().compute {
        Compute::F16 => DType::F16,
        Compute::BF16 => DType::BF16,
        Compute::F32 | Compute::Int8 => return Outcome::NoMatch,
    };
    decode(cx, id, |dtype| (dtype == half).then_some(half))
}

/// Weights in block types, and of bf16, become what `to` says for the type of the first result.
fn decode(cx: &Matcher<'_>, id: NodeId, to: impl Fn(DType) -> Option<DType>) -> Outcome {
    let node = cx.node(id);
    let packed = |v: &Value| {
        let dtype = cx.ty(*v).dtype;
        (dtype.is_block() || dtype == DType::BF16) && cx.role(*v) == Role::Weight
    };
    let at: Vec<usize> =
        node.operands.iter().enumerate().filter(|(_, v)| packed(v)).map(|(at, _)| at).collect();
    let Some(to) = node.results.first().and_then(|v| to(cx.ty(*v).dtype)) else { return Outcome::NoMatch };
    if at.is_empty() || refused(cx, node).is_none() {
        return Outcome::NoMatch;
    }
    let mut operands: Vec<Operand> = node.operands.iter().map(|&v| v.into()).collect();
    for &at in &at {
        let shape = cx.ty(node.operands[at]).shape.clone();
        operands[at] = Operand::New(Type::new(to, shape), Role::Weight);
    }
    if let Err(reason) = cx.check(&*node.op, &operands) {
        return Outcome::NearMiss(reason);
    }
    let op = node.op.clone();
    Outcome::Patch(Patch::of_node(cx.graph(), id, node.operands.to_vec(), move |b, x| {
        let mut operands = x.to_vec();
        for at in at {
            let block = b.ty(x[at]).dtype.is_block();
            operands[at] = if block { b.dequantize(x[at], to)? } else { b.cast(x[at], to)? };
        }
        Ok(b.emit_ref(op, &operands)?)
    }))
}

fn decompose(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let node = cx.node(id);
    if node.op.tier() != Tier::Composite {
        return Outcome::NoMatch;
    }
    let Some(reason) = refused(cx, node) else { return Outcome::NoMatch };
    let op = node.op.clone();
    Outcome::Patch(Patch::of_node(cx.graph(), id, node.operands.to_vec(), move |b, x| {
        match op.decompose(b, x)? {
            Some(values) => Ok(values),
            None => rlx_ir::bail!(
                UnsupportedOnDevice,
                "the device does not run {}: {reason}; and it does not decompose",
                op.name()
            ),
        }
    }))
}
