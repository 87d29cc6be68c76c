//! `fuse_norm`: a residual sum and the norm that reads it become one op with both results.

use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::add_rms_norm::AddRmsNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::{Graph, NodeId, Op, OpRef, Value};

use super::{Pass, PassContext};
use crate::Result;
use crate::rewrite::{Matcher, Numerics, Operand, Outcome, PassReport, Patch, Rule, fuse};

const NAME: &str = "fuse_norm";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

const RULES: &[Rule] = &[Rule {
    name: "add_norm",
    numerics: Numerics::Exact,
    doc: "layer_norm or rms_norm of a + b -> add_layer_norm or add_rms_norm, whose first result is the sum",
    apply,
}];

/// Fuses sums into norms.
///
/// # Errors
/// `Bug` where a patch does not fit.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    fuse(NAME, RULES, graph, cx)
}

fn apply(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let node = cx.node(id);
    let op: OpRef = match (node.op.downcast::<LayerNorm>(), node.op.downcast::<RmsNorm>()) {
        (Some(norm), _) => std::sync::Arc::new(AddLayerNorm { eps: norm.eps }),
        (_, Some(norm)) => std::sync::Arc::new(AddRmsNorm { norm: *norm }),
        _ => return Outcome::NoMatch,
    };
    let sum = node.operands[0];
    let Some((add, add_node, Binary { kind: BinaryKind::Add })) = cx.producer_as::<Binary>(sum) else {
        return Outcome::NoMatch;
    };
    if let Some(&other) = add_node.operands.iter().find(|&&v| cx.ty(v) != cx.ty(sum)) {
        return Outcome::NearMiss(format!("the sum broadcasts {} to {}", cx.ty(other), cx.ty(sum)));
    }
    if node.operands[1..].contains(&sum) {
        return Outcome::NearMiss("the norm reads the sum as weight or bias too".to_owned());
    }
    let reads: Vec<Value> = add_node.operands.iter().chain(&node.operands[1..]).copied().collect();
    let typed: Vec<Operand> = reads.iter().map(|&v| v.into()).collect();
    let results = [sum, node.results[0]];
    if let Err(reason) = cx.check_replaces(&*op as &dyn Op, &typed, &results) {
        return Outcome::NearMiss(reason);
    }
    Outcome::Patch(Patch::new([add, id], reads, results, move |b, x| Ok(b.emit_ref(op, x)?)))
}
