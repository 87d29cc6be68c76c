//! Elementwise functions that leave their operand as it is.

use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::elementwise::unary::{Unary, UnaryKind};
use rlx_ir::{NodeId, Value};

use crate::rewrite::{Matcher, Numerics, Outcome, Patch, Rule};

/// `x * 1` and kin -> `x`.
pub(super) const NEUTRAL: Rule = Rule {
    name: "neutral_operand",
    numerics: Numerics::Exact,
    doc: "x * 1, x / 1, x - 0, x + -0.0, x ^ 1 (for integers also x + 0) -> x",
    apply: neutral,
};

/// `x + 0` -> `x`.
pub(super) const ADD_POSITIVE_ZERO: Rule = Rule {
    name: "add_positive_zero",
    numerics: Numerics::Reassociates,
    doc: "x + 0.0 -> x; a result of 0.0 may become -0.0",
    apply: add_positive_zero,
};

/// `-(-x)` -> `x`.
pub(super) const INVOLUTION: Rule = Rule {
    name: "involution",
    numerics: Numerics::Exact,
    doc: "neg of neg, not of not -> the operand",
    apply: involution,
};

/// `relu(relu(x))` -> `relu(x)`.
pub(super) const IDEMPOTENT: Rule = Rule {
    name: "idempotent",
    numerics: Numerics::Exact,
    doc: "abs, relu, sign, floor, ceil, round of itself -> once",
    apply: idempotent,
};

/// The operand that `kind` gives back when the other is the number that comes with it.
fn neutral(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some((node, Binary { kind })) = cx.node_as::<Binary>(id) else { return Outcome::NoMatch };
    let is_float = cx.ty(node.results[0]).dtype.is_float();
    // Whether operand `i` can be left out.
    let dropped = |i: usize| {
        let Some(c) = cx.uniform(node.operands[i]) else { return false };
        let positive_zero = c.to_bits() == 0;
        match kind {
            BinaryKind::Mul => c == 1.0,
            BinaryKind::Div | BinaryKind::Pow => i == 1 && c == 1.0,
            BinaryKind::Sub => i == 1 && positive_zero,
            BinaryKind::Add if is_float => c == 0.0 && !positive_zero,
            BinaryKind::Add => positive_zero,
            _ => false,
        }
    };
    match [1, 0].into_iter().find(|&i| dropped(i)) {
        Some(i) => keep(cx, id, node.operands[1 - i]),
        None => Outcome::NoMatch,
    }
}

fn add_positive_zero(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some((node, Binary { kind: BinaryKind::Add })) = cx.node_as::<Binary>(id) else {
        return Outcome::NoMatch;
    };
    match [1, 0].into_iter().find(|&i| cx.uniform(node.operands[i]).is_some_and(|c| c.to_bits() == 0)) {
        Some(i) => keep(cx, id, node.operands[1 - i]),
        None => Outcome::NoMatch,
    }
}

fn keep(cx: &Matcher<'_>, id: NodeId, value: Value) -> Outcome {
    let result = cx.node(id).results[0];
    if cx.ty(value) != cx.ty(result) {
        return Outcome::NearMiss(format!("the constant broadcasts {} to {}", cx.ty(value), cx.ty(result)));
    }
    Outcome::Patch(Patch::forward(cx.graph(), id, value))
}

fn involution(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some((node, outer)) = cx.node_as::<Unary>(id) else { return Outcome::NoMatch };
    match cx.producer_as::<Unary>(node.operands[0]) {
        Some((_, inner, op))
            if op.kind == outer.kind && matches!(op.kind, UnaryKind::Neg | UnaryKind::Not) =>
        {
            Outcome::Patch(Patch::forward(cx.graph(), id, inner.operands[0]))
        }
        _ => Outcome::NoMatch,
    }
}

fn idempotent(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    use UnaryKind::{Abs, Ceil, Floor, Relu, Round, Sign};
    let Some((node, outer)) = cx.node_as::<Unary>(id) else { return Outcome::NoMatch };
    match cx.producer_as::<Unary>(node.operands[0]) {
        Some((_, _, op))
            if op.kind == outer.kind && matches!(op.kind, Abs | Relu | Sign | Floor | Ceil | Round) =>
        {
            Outcome::Patch(Patch::forward(cx.graph(), id, node.operands[0]))
        }
        _ => Outcome::NoMatch,
    }
}
