//! Casts and selections that are known.

use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::elementwise::select::Select;
use rlx_ir::{DType, NodeId};

use crate::rewrite::{Matcher, Numerics, Outcome, Patch, Rule};

/// A cast to the type that is there -> the operand.
pub(super) const CAST_TO_SAME: Rule = Rule {
    name: "cast_to_same",
    numerics: Numerics::Exact,
    doc: "cast to the dtype that x has -> x",
    apply: cast_to_same,
};

/// A cast of a cast that lost nothing -> one cast.
pub(super) const CAST_OF_CAST: Rule = Rule {
    name: "cast_of_cast",
    numerics: Numerics::Exact,
    doc: "cast of a cast from one float type to a wider one -> one cast",
    apply: cast_of_cast,
};

/// A selection by a constant -> what it selects.
pub(super) const SELECT_KNOWN: Rule = Rule {
    name: "select_known",
    numerics: Numerics::Exact,
    doc: "select whose condition is all true or all false -> the operand that it selects",
    apply: select_known,
};

fn cast_to_same(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    match cx.node_as::<Cast>(id) {
        Some((node, op)) if cx.ty(node.operands[0]).dtype == op.to => {
            Outcome::Patch(Patch::forward(cx.graph(), id, node.operands[0]))
        }
        _ => Outcome::NoMatch,
    }
}

/// Whether every value of float type `from` is one of float type `to`.
fn widens(from: DType, to: DType) -> bool {
    use DType::{BF16, F16, F32, F64};
    matches!((from, to), (F16 | BF16, F32 | F64) | (F32, F64))
}

fn cast_of_cast(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some((node, outer)) = cx.node_as::<Cast>(id) else { return Outcome::NoMatch };
    let Some((_, inner, via)) = cx.producer_as::<Cast>(node.operands[0]) else { return Outcome::NoMatch };
    let x = inner.operands[0];
    let from = cx.ty(x).dtype;
    if !widens(from, via.to) {
        return Outcome::NearMiss(format!("the cast from {from} to {} loses values", via.to));
    }
    if from == outer.to {
        return Outcome::Patch(Patch::forward(cx.graph(), id, x));
    }
    let op = *outer;
    if let Err(reason) = cx.check_replaces(&op, &[x.into()], &node.results) {
        return Outcome::NearMiss(reason);
    }
    Outcome::Patch(Patch::of_node(cx.graph(), id, [x], move |b, x| Ok(b.emit(op, x)?)))
}

fn select_known(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some((node, _)) = cx.node_as::<Select>(id) else { return Outcome::NoMatch };
    let Some(condition) = cx.uniform(node.operands[0]) else { return Outcome::NoMatch };
    let chosen = node.operands[if condition == 0.0 { 2 } else { 1 }];
    if cx.ty(chosen) != cx.ty(node.results[0]) {
        return Outcome::NearMiss(format!(
            "the selection broadcasts {} to {}",
            cx.ty(chosen),
            cx.ty(node.results[0])
        ));
    }
    Outcome::Patch(Patch::forward(cx.graph(), id, chosen))
}
