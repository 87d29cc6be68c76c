//! `legalise`: composites that the target refuses are decomposed, until it refuses none. Weights of what they decompose into
//! are decoded where the target takes no other, as by `decode`.
//!
//! Work on weights alone is done once at load, and a view is no work at all: the target is not asked about either.

use rlx_ir::op::{Tier, fault_of};
use rlx_ir::{Builder, Def, Graph, Node, NodeId, Op, Type, Value, View};

use super::{Pass, PassContext, decode};
use crate::rewrite::{Matcher, Numerics, Outcome, PassReport, Patch, Rule, rewrite};
use crate::{Error, Result, Role, Support};

const NAME: &str = "legalise";

/// The name of the rule for composites.
const DECOMPOSE: &str = "decompose";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

const RULES: &[Rule] = &[Rule {
    name: DECOMPOSE,
    numerics: Numerics::Reassociates,
    doc: "a composite that the target refuses -> what its definition says in other ops",
    apply: decompose,
}];

/// What a decomposition leaves may have to be decoded.
const ALL: &[Rule] = &[decode::DECODE_WEIGHT, RULES[0]];

/// Decomposes what the target refuses.
///
/// # Errors
/// `UnsupportedOnDevice` naming op, types and the target's reason, where it refuses an op that does not decompose.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    let (graph, report) = rewrite(NAME, ALL, graph, cx)?;
    let matcher = Matcher::new(&graph, cx);
    // The last sweep asked about every composite: one that was refused is left only where its patch had no place.
    let composites_run = report.near_misses.iter().all(|m| m.rule != DECOMPOSE);
    for (id, node) in graph.iter_nodes() {
        if composites_run && node.op.tier() == Tier::Composite {
            continue;
        }
        if let Some(reason) = refused(&matcher, id) {
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

/// Why the target does not run the node `id`, if it must and does not.
pub(super) fn refused(cx: &Matcher<'_>, id: NodeId) -> Option<String> {
    let node = cx.node(id);
    let prepared = node.results.iter().all(|&v| cx.role(v) == Role::Weight);
    if prepared || is_view(cx, node) {
        return None;
    }
    match cx.supports(id) {
        Support::Yes => None,
        Support::No(reason) => Some(reason),
    }
}

fn is_view(cx: &Matcher<'_>, node: &Node) -> bool {
    match (&*node.operands, node.results.first()) {
        (&[x], Some(&y)) if !cx.ty(y).dtype.is_block() => {
            node.op.view(&View::dense(&cx.ty(x).shape), cx.ty(y)).is_some()
        }
        _ => false,
    }
}

fn decompose(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let node = cx.node(id);
    if node.op.tier() != Tier::Composite {
        return Outcome::NoMatch;
    }
    let Some(reason) = refused(cx, id) else { return Outcome::NoMatch };
    let (op, types) = (node.op.clone(), cx.graph().result_types(node).to_vec());
    Outcome::Patch(Patch::of_node(cx.graph(), id, node.operands.to_vec(), move |b, x| {
        let before = b.graph().values().len();
        match op.decompose(b, x)? {
            Some(values) => {
                check_decomposed(&*op, &types, b, (x, before), &values)?;
                Ok(values)
            }
            None => rlx_ir::bail!(
                UnsupportedOnDevice,
                "the device does not run {}: {reason}; and it does not decompose",
                op.name()
            ),
        }
    }))
}

/// Checks what `op` with results of `types` made of itself on `operands`: its results, and the values of `b` from number
/// `before` on. A mistake of an op that is not built in is its author's.
///
/// # Errors
/// `InvalidArgument`, for built-in ops `Bug`, naming the op, what was expected and what came.
fn check_decomposed(
    op: &dyn Op,
    types: &[Type],
    b: &Builder,
    (operands, before): (&[Value], usize),
    values: &[Value],
) -> Result<()> {
    let wrong = |what: String| Err(Error::new(fault_of(op), format!("decompose of {}: {what}", op.name())));
    if values.len() != types.len() {
        return wrong(format!("expected {} results, got {}", types.len(), values.len()));
    }
    let graph = b.graph();
    for (index, (&value, ty)) in values.iter().zip(types).enumerate() {
        if !graph.contains(value) {
            return wrong(format!(
                "result {index}: expected a value of the builder, got one of another graph"
            ));
        }
        if graph.ty(value) != ty {
            return wrong(format!("result {index}: expected {ty}, got {}", graph.ty(value)));
        }
    }
    for info in graph.values().iter().skip(before) {
        let kind = match &info.def {
            Def::Input(_) => "an input",
            Def::State(_) => "a state",
            Def::Weight { .. } => "a weight",
            Def::Const(_) => continue,
            Def::Result { node, .. } => {
                let node = graph.node(*node);
                let same_types =
                    || node.operands.iter().map(|&v| graph.ty(v)).eq(operands.iter().map(|&v| graph.ty(v)));
                if node.op.name() == op.name() && node.op.attrs() == op.attrs() && same_types() {
                    return wrong(
                        "it emits the op itself on operands of the same types, without end".to_owned(),
                    );
                }
                continue;
            }
        };
        return wrong(format!("expected ops and constants, got {kind}, %{}", info.name));
    }
    Ok(())
}
