//! `dce`: nodes, weights and constants that nothing needs go.
//!
//! Needed is what the graph returns, every node that writes a state, and what these read. Declared inputs and states stay:
//! they are part of the graph's signature.

use rlx_ir::{Builder, Def, Graph, Value, Values};

use super::{Pass, PassContext};
use crate::Result;
use crate::rewrite::{Fired, Numerics, Outcome, PassReport, Rule};

const NAME: &str = "dce";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

/// The one rule; it looks at the whole graph, so its work is in [`run`].
const RULES: &[Rule] = &[Rule {
    name: "drop_unused",
    numerics: Numerics::Exact,
    doc: "a node without a needed result, an unused weight or constant -> nothing",
    apply: |_, _| Outcome::NoMatch,
}];

/// Drops what is not needed.
///
/// # Errors
/// `Bug` where the graph breaks the verifier's invariants.
pub fn run(graph: Graph, _: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    let needed = needed(&graph);
    let nodes_before = graph.nodes().len();
    let mut report =
        PassReport { pass: NAME, nodes_before, nodes_after: nodes_before, ..PassReport::default() };
    let alive = |v: &Value| needed[v.index()];
    let mut fired = |v: Value| {
        report.fired.push(Fired { rule: RULES[0].name, value: graph.value(v).name.clone() });
    };
    for value in graph.value_ids() {
        if matches!(graph.value(value).def, Def::Weight { .. } | Def::Const(_)) && !alive(&value) {
            fired(value);
        }
    }
    for node in graph.nodes() {
        if let (false, Some(first)) = (node.results.iter().any(alive), node.results.first()) {
            fired(*first);
        }
    }
    if report.fired.is_empty() {
        return Ok((graph, report));
    }
    let mut b = Builder::like(&graph);
    let mut map: Vec<Option<Value>> = vec![None; graph.values().len()];
    for value in graph.value_ids() {
        let info = graph.value(value);
        let keep = match info.def {
            Def::Input(_) | Def::State(_) => true,
            Def::Weight { .. } | Def::Const(_) => alive(&value),
            Def::Result { .. } => false,
        };
        if keep {
            map[value.index()] = Some(b.declare_like(info)?);
        }
    }
    for node in graph.nodes().iter().filter(|n| n.results.iter().any(alive)) {
        // What a live node reads is live.
        let operands: Values = node.operands.iter().filter_map(|v| map[v.index()]).collect();
        let results = b.copy_node(&graph, node, operands)?;
        for (old, new) in node.results.iter().zip(results) {
            map[old.index()] = Some(new);
        }
    }
    let outputs: Vec<Value> = graph.outputs().iter().filter_map(|v| map[v.index()]).collect();
    let out = b.finish_unverified(&outputs)?;
    report.nodes_after = out.nodes().len();
    Ok((out, report))
}

/// Which values are needed; a node with one needed result keeps all of them.
fn needed(graph: &Graph) -> Vec<bool> {
    let mut needed = vec![false; graph.values().len()];
    graph.outputs().iter().for_each(|v| needed[v.index()] = true);
    for node in graph.nodes().iter().rev() {
        if node.op.writes_state() || node.results.iter().any(|v| needed[v.index()]) {
            node.operands.iter().chain(&node.results).for_each(|v| needed[v.index()] = true);
        }
    }
    needed
}
