//! `cse`: what is computed twice is computed once.
//!
//! Two nodes are the same when their ops have one name and equal attributes, their operands are the same (by this very
//! rule), and neither writes a state. A version of a state is a value, so reads of different versions differ.

use rlx_ir::{Def, Graph, Node, NodeId, Op, Value, Values};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Pass, PassContext};
use crate::Result;
use crate::rewrite::{Fired, Matcher, Numerics, Outcome, PassReport, Patch, Rule, Sweep};

const NAME: &str = "cse";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

/// The rules; they compare nodes with all earlier ones, so their work is in [`run`].
const RULES: &[Rule] = &[
    Rule {
        name: "same_node",
        numerics: Numerics::Exact,
        doc: "a node with the op, attributes and operands of an earlier one -> the earlier results",
        apply: |_, _| Outcome::NoMatch,
    },
    Rule {
        name: "same_const",
        numerics: Numerics::Exact,
        doc: "a constant with the type and bytes of an earlier one -> the earlier one",
        apply: |_, _| Outcome::NoMatch,
    },
];

/// Merges equal nodes and constants.
///
/// # Errors
/// `Bug` where a patch does not fit.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    let mut report = PassReport { pass: NAME, nodes_before: graph.nodes().len(), ..PassReport::default() };
    let name = |v: Value| graph.value(v).name.clone();
    let mut canonical = same_constants(&graph);
    let matcher = Matcher::new(&graph, cx);
    let doubled = |v: &Value| canonical[v.index()] != *v && !matcher.users(*v).is_empty();
    for value in graph.value_ids().filter(doubled) {
        report.fired.push(Fired { rule: "same_const", value: name(value) });
    }
    let mut sweep = Sweep::new(&matcher);
    let mut seen: FxHashMap<(&str, Values), SmallVec<[NodeId; 4]>> = FxHashMap::default();
    seen.reserve(graph.nodes().len());
    for (id, node) in graph.iter_nodes() {
        let operands: Values = node.operands.iter().map(|v| canonical[v.index()]).collect();
        let alike = seen.entry((node.op.name(), operands.clone())).or_default();
        let earlier = alike.iter().map(|&e| graph.node(e)).find(|e| same(e, node));
        if let Some(earlier) = earlier {
            for (later, first) in node.results.iter().zip(&earlier.results) {
                canonical[later.index()] = *first;
            }
            let patch =
                Patch::new([id], earlier.results.to_vec(), node.results.to_vec(), |_, x| Ok(x.to_vec()));
            if sweep.offer(patch)? {
                report.fired.push(Fired { rule: "same_node", value: name(node.results[0]) });
            }
            continue;
        }
        alike.push(id);
        if operands != node.operands {
            let op = node.op.clone();
            let patch = Patch::of_node(&graph, id, operands.into_vec(), move |b, x| Ok(b.emit_ref(op, x)?));
            sweep.offer(patch)?;
        }
    }
    let merged = !sweep.is_empty();
    let out = if merged { Some(sweep.rebuild()?) } else { None };
    drop(seen);
    let graph = out.unwrap_or(graph);
    report.nodes_after = graph.nodes().len();
    Ok((graph, report))
}

fn same(a: &Node, b: &Node) -> bool {
    !a.op.writes_state()
        && !b.op.writes_state()
        && a.results.len() == b.results.len()
        && same_attrs(&*a.op, &*b.op)
}

/// Attributes are the same when they print alike: zeros of either sign differ.
fn same_attrs(a: &dyn Op, b: &dyn Op) -> bool {
    let (a, b) = (a.attrs(), b.attrs());
    a == b && a.to_string() == b.to_string()
}

/// For each value itself, or the first constant with its type and bytes.
fn same_constants(graph: &Graph) -> Vec<Value> {
    let mut canonical: Vec<Value> = graph.value_ids().collect();
    let mut seen: FxHashMap<_, Value> = FxHashMap::default();
    for value in graph.value_ids() {
        if let Def::Const(t) = &graph.value(value).def {
            canonical[value.index()] = *seen.entry((t.ty(), t.bytes())).or_insert(value);
        }
    }
    canonical
}
