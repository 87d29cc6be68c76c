//! Constant folding through the reference evaluation, so that a folded value is the value.

use rlx_ir::NodeId;

use crate::rewrite::{Matcher, Numerics, Outcome, Patch, Rule};

/// Results of up to this many elements are worth a constant even where the operands are smaller.
const SMALL_ELEMS: usize = 64;

/// A node on constants -> a constant.
pub(super) const FOLD_CONST: Rule = Rule {
    name: "fold_const",
    numerics: Numerics::Exact,
    doc: "a node whose operands are constants -> its value, where that is small or no larger than an operand",
    apply,
};

fn apply(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let node = cx.node(id);
    if node.results.iter().any(|&v| cx.constant(v).is_none()) {
        return Outcome::NoMatch;
    }
    let results: Option<Vec<_>> = node.results.iter().map(|&v| cx.constant(v).cloned()).collect();
    let Some(results) = results else { return Outcome::NoMatch };
    let operand_elems = node.operands.iter().filter_map(|&v| cx.constant(v)).map(|t| t.elems()).max();
    let limit = operand_elems.unwrap_or(0).max(SMALL_ELEMS);
    if let Some(large) = results.iter().find(|t| t.elems() > limit) {
        return Outcome::NearMiss(format!(
            "a constant of {} elements would take the place of {} of {}",
            large.elems(),
            node.op.name(),
            operand_elems.map_or("nothing".to_owned(), |n| format!("{n} elements")),
        ));
    }
    Outcome::Patch(Patch::of_node(cx.graph(), id, [], move |b, _| {
        Ok(results.into_iter().map(|t| b.shared_constant(t)).collect())
    }))
}
