//! Ops that move elements: what moves nothing goes, and two moves become one.

use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::ops::shape::{
    broadcast::Broadcast, concat::Concat, pad::Pad, reshape::Reshape, slice::Slice, transpose::Transpose,
};
use rlx_ir::{Dim, NodeId};

use crate::rewrite::{Matcher, Numerics, Outcome, Patch, Rule};

/// A move that changes nothing -> its operand.
pub(super) const NO_MOVE: Rule = Rule {
    name: "no_move",
    numerics: Numerics::Exact,
    doc: "reshape, broadcast, slice, pad, transpose or concat of one that gives back its operand -> the operand",
    apply: no_move,
};

/// `reshape(reshape(x))` -> `reshape(x)`.
pub(super) const RESHAPE_OF_RESHAPE: Rule = Rule {
    name: "reshape_of_reshape",
    numerics: Numerics::Exact,
    doc: "reshape of reshape -> one reshape",
    apply: reshape_of_reshape,
};

/// `transpose(transpose(x))` -> `transpose(x)`.
pub(super) const TRANSPOSE_OF_TRANSPOSE: Rule = Rule {
    name: "transpose_of_transpose",
    numerics: Numerics::Exact,
    doc: "transpose of transpose -> one transpose with the composed permutation",
    apply: transpose_of_transpose,
};

/// `matmul(a, transpose(b))` -> `matmul(a, b)` with `transpose_b` turned over.
pub(super) const TRANSPOSE_INTO_MATMUL: Rule = Rule {
    name: "transpose_into_matmul",
    numerics: Numerics::Exact,
    doc: "matmul whose second operand is the transpose of a matrix -> matmul of that matrix with transpose_b turned over",
    apply: transpose_into_matmul,
};

fn no_move(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let node = cx.node(id);
    let op = &*node.op;
    let (Some(&x), Some(&y)) = (node.operands.first(), node.results.first()) else { return Outcome::NoMatch };
    let same = cx.ty(x) == cx.ty(y);
    let zero = Dim::constant(0);
    // Of equal types, each of these is the identity.
    let nothing_moves = if let Some(slice) = op.downcast::<Slice>() {
        slice.start == zero && slice.step == 1
    } else if let Some(transpose) = op.downcast::<Transpose>() {
        transpose.perm.iter().enumerate().all(|(i, &p)| i == p)
    } else if let Some(pad) = op.downcast::<Pad>() {
        pad.low.dims().iter().chain(pad.high.dims()).all(|d| *d == zero)
    } else {
        op.is::<Reshape>() || op.is::<Broadcast>() || (op.is::<Concat>() && node.operands.len() == 1)
    };
    if nothing_moves && same { Outcome::Patch(Patch::forward(cx.graph(), id, x)) } else { Outcome::NoMatch }
}

fn reshape_of_reshape(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some((node, _)) = cx.node_as::<Reshape>(id) else { return Outcome::NoMatch };
    let Some((_, inner, _)) = cx.producer_as::<Reshape>(node.operands[0]) else { return Outcome::NoMatch };
    let op = node.op.clone();
    Outcome::Patch(Patch::of_node(cx.graph(), id, [inner.operands[0]], move |b, x| Ok(b.emit_ref(op, x)?)))
}

fn transpose_of_transpose(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some((node, outer)) = cx.node_as::<Transpose>(id) else { return Outcome::NoMatch };
    let Some((_, inner_node, inner)) = cx.producer_as::<Transpose>(node.operands[0]) else {
        return Outcome::NoMatch;
    };
    let perm: Vec<usize> = outer.perm.iter().map(|&p| inner.perm[p]).collect();
    Outcome::Patch(Patch::of_node(cx.graph(), id, [inner_node.operands[0]], move |b, x| {
        Ok(vec![b.transpose(x[0], perm)?])
    }))
}

fn transpose_into_matmul(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some((node, matmul)) = cx.node_as::<MatMul>(id) else { return Outcome::NoMatch };
    let Some((_, inner, transpose)) = cx.producer_as::<Transpose>(node.operands[1]) else {
        return Outcome::NoMatch;
    };
    let rank = transpose.perm.len();
    let mut swapped: Vec<usize> = (0..rank).collect();
    swapped.swap(rank - 2, rank - 1);
    if transpose.perm != swapped {
        return Outcome::NearMiss("the transpose does not swap the last two axes alone".to_owned());
    }
    let op = MatMul { transpose_b: !matmul.transpose_b };
    let operands = [node.operands[0], inner.operands[0]];
    if let Err(reason) = cx.check_replaces(&op, &operands.map(Into::into), &node.results) {
        return Outcome::NearMiss(reason);
    }
    Outcome::Patch(Patch::of_node(cx.graph(), id, operands, move |b, x| Ok(b.emit(op, x)?)))
}
