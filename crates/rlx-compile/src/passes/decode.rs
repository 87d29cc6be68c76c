//! `decode`: weights in types that the target has no kernels for are decoded once, at load. All later stages see weights that
//! it takes.

use rlx_ir::{Builder, DType, Def, Graph, Node, NodeId, Type, Value};

use super::legalise::refused;
use super::{Pass, PassContext};
use crate::rewrite::{Matcher, Numerics, Operand, Outcome, PassReport, Patch, Rule, rewrite, roles};
use crate::{Result, Role};

const NAME: &str = "decode";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

/// An op on a weight that the target takes in f32 alone -> the same on the decoded weight.
pub(super) const DECODE_WEIGHT: Rule = Rule {
    name: "decode_weight",
    numerics: Numerics::Exact,
    doc: "an op that the target refuses for a weight in a block type or bf16 -> the same on the weight decoded to f32 once at load",
    apply: decode_weight,
};

const RULES: &[Rule] = &[DECODE_WEIGHT];

/// Decodes weights.
///
/// # Errors
/// `Bug` where a patch does not fit.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    let (graph, report) = rewrite(NAME, RULES, graph, cx)?;
    if report.fired.is_empty() {
        return Ok((graph, report));
    }
    Ok((weights_first(&graph)?, report))
}

/// Work on weights comes before all else, so that it is ready wherever a later pass puts what reads it.
fn weights_first(graph: &Graph) -> Result<Graph> {
    let roles = roles(graph);
    let (mut b, mut map) = (Builder::like(graph), vec![None; graph.values().len()]);
    for value in graph.value_ids() {
        let info = graph.value(value);
        if !matches!(info.def, Def::Result { .. }) {
            map[value.index()] = Some(b.declare_like(info)?);
        }
    }
    let of_weights = |node: &Node| node.results.iter().all(|v| roles[v.index()] == Role::Weight);
    let (first, rest): (Vec<&Node>, Vec<&Node>) = graph.nodes().iter().partition(|node| of_weights(node));
    for node in first.into_iter().chain(rest) {
        // What a node reads was copied before it: weights are made of weights alone.
        let operands = node.operands.iter().filter_map(|v| map[v.index()]).collect();
        for (old, new) in node.results.iter().zip(b.copy_node(graph, node, operands)?) {
            map[old.index()] = Some(new);
        }
    }
    let outputs: Vec<Value> = graph.outputs().iter().filter_map(|v| map[v.index()]).collect();
    Ok(b.finish_unverified(&outputs)?)
}

fn decode_weight(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let node = cx.node(id);
    let packed = |v: &Value| {
        let dtype = cx.ty(*v).dtype;
        (dtype.is_block() || dtype == DType::BF16) && cx.role(*v) == Role::Weight
    };
    let at: Vec<usize> =
        node.operands.iter().enumerate().filter(|(_, v)| packed(v)).map(|(at, _)| at).collect();
    if at.is_empty() || refused(cx, id).is_none() {
        return Outcome::NoMatch;
    }
    let mut operands: Vec<Operand> = node.operands.iter().map(|&v| v.into()).collect();
    for &at in &at {
        let shape = cx.ty(node.operands[at]).shape.clone();
        operands[at] = Operand::New(Type::new(DType::F32, shape), Role::Weight);
    }
    if let Err(reason) = cx.check_replaces(&*node.op, &operands, &node.results) {
        return Outcome::NearMiss(reason);
    }
    let op = node.op.clone();
    Outcome::Patch(Patch::of_node(cx.graph(), id, node.operands.to_vec(), move |b, x| {
        let mut operands = x.to_vec();
        for at in at {
            let block = b.ty(x[at]).dtype.is_block();
            operands[at] = if block { b.dequantize(x[at], DType::F32)? } else { b.cast(x[at], DType::F32)? };
        }
        Ok(b.emit_ref(op, &operands)?)
    }))
}
