//! f16 and bf16: products and attention change first, and what stands between them follows, so that no cast is left between
//! two ops that both run in the lower type.

use rlx_ir::ops::activation::{gelu::Gelu, glu::Glu, silu::Silu};
use rlx_ir::ops::attention::{attention::Attention, paged_attention::PagedAttention};
use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::elementwise::unary::{Unary, UnaryKind};
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::add_rms_norm::AddRmsNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::norm::softmax::Softmax;
use rlx_ir::ops::position::rope::Rope;
use rlx_ir::ops::shape::{broadcast::Broadcast, reshape::Reshape, slice::Slice, transpose::Transpose};
use rlx_ir::{DType, Node, NodeId, Op, OpRef, Type, Value};

use crate::Role;
use crate::precision::Compute;
use crate::rewrite::{Matcher, Numerics, Operand, Outcome, Patch, Rule};

/// An op on f32 -> the same on the lower type, between casts.
pub(super) const LOWER_TO_HALF: Rule = Rule {
    name: "lower_to_half",
    numerics: Numerics::LowersPrecision,
    doc: "an f32 product or attention, or what reads a lowered one -> the same in f16 or bf16 between casts",
    apply: lower,
};

/// A narrowing cast of a widening one, views in between -> nothing.
pub(super) const CANCEL_CASTS: Rule = Rule {
    name: "cancel_casts",
    numerics: Numerics::Exact,
    doc: "a cast back to the type from which a cast to f32 came, views in between -> the views alone",
    apply: cancel,
};

fn half(cx: &Matcher<'_>) -> Option<DType> {
    match cx.policy().compute {
        Compute::F16 => Some(DType::F16),
        Compute::BF16 => Some(DType::BF16),
        Compute::F32 | Compute::Int8 => None,
    }
}

/// Which operands take the lower type, for ops that have a lower form; and whether the op starts one (others follow).
fn lowered_operands(node: &Node) -> Option<(Vec<usize>, bool)> {
    let op: &dyn Op = &*node.op;
    if let Some(linear) = op.downcast::<Linear>() {
        let (_, residual) = linear.operand_positions();
        return Some(([0, 1].into_iter().chain(residual).collect(), true));
    }
    if op.is::<MatMul>() {
        return Some((vec![0, 1], true));
    }
    if op.is::<Attention>() {
        return Some((vec![0, 1, 2], true));
    }
    if op.is::<PagedAttention>() {
        return Some((vec![0], true));
    }
    if op.is::<AddLayerNorm>() || op.is::<AddRmsNorm>() {
        return Some((vec![0, 1], false));
    }
    if let Some(Binary { kind }) = op.downcast() {
        use BinaryKind::{Add, Div, Max, Min, Mul, Sub};
        return matches!(kind, Add | Sub | Mul | Div | Max | Min).then(|| (vec![0, 1], false));
    }
    if let Some(Unary { kind }) = op.downcast() {
        use UnaryKind::{Abs, Erf, Neg, Relu, Sigmoid, Tanh};
        return matches!(kind, Abs | Erf | Neg | Relu | Sigmoid | Tanh).then(|| (vec![0], false));
    }
    let follows = op.is::<Gelu>()
        || op.is::<Silu>()
        || op.is::<Glu>()
        || op.is::<Softmax>()
        || op.is::<Rope>()
        || op.is::<LayerNorm>()
        || op.is::<RmsNorm>();
    follows.then(|| (vec![0], false))
}

fn is_view(op: &dyn Op) -> bool {
    op.is::<Reshape>() || op.is::<Transpose>() || op.is::<Slice>() || op.is::<Broadcast>()
}

/// The value of the lower type that `value` was widened from, and the views in between, the last first.
fn widened_from(cx: &Matcher<'_>, value: Value, from: DType) -> Option<(Value, Vec<OpRef>)> {
    let mut views = Vec::new();
    let mut at = value;
    loop {
        let (_, node) = cx.producer(at)?;
        let source = node.operands.first().copied()?;
        if let Some(Cast { to }) = node.op.downcast() {
            return (*to == DType::F32 && cx.ty(source).dtype == from).then_some((source, views));
        }
        if !is_view(&*node.op) {
            return None;
        }
        views.push(node.op.clone());
        at = source;
    }
}

fn cancel(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let Some(half) = half(cx) else { return Outcome::NoMatch };
    let Some((node, Cast { to })) = cx.node_as::<Cast>(id) else { return Outcome::NoMatch };
    if *to != half {
        return Outcome::NoMatch;
    }
    let Some((source, views)) = widened_from(cx, node.operands[0], half) else { return Outcome::NoMatch };
    if views.is_empty() {
        return Outcome::Patch(Patch::forward(cx.graph(), id, source));
    }
    Outcome::Patch(Patch::of_node(cx.graph(), id, [source], move |b, v| {
        let mut value = v[0];
        for view in views.into_iter().rev() {
            value = b.emit_one_ref(view, &[value])?;
        }
        Ok(vec![value])
    }))
}

fn lower(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let node = cx.node(id);
    let Some(half) = half(cx) else { return Outcome::NoMatch };
    let Some((indices, starts)) = lowered_operands(node) else { return Outcome::NoMatch };
    let is_f32 = |v: Value| cx.ty(v).dtype == DType::F32;
    let of_activations = node.results.iter().all(|&v| is_f32(v) && cx.role(v) == Role::Activation);
    let follows = || indices.iter().any(|&i| widened_from(cx, node.operands[i], half).is_some());
    if !of_activations || !(starts || follows()) {
        return Outcome::NoMatch;
    }
    if let Some(keep) = cx.policy().kept(cx.graph(), node) {
        return Outcome::NearMiss(format!("the policy keeps {keep}"));
    }
    let indices: Vec<usize> = indices.into_iter().filter(|&i| is_f32(node.operands[i])).collect();
    let mut operands: Vec<Operand> = node.operands.iter().map(|&v| v.into()).collect();
    for &i in &indices {
        let v = node.operands[i];
        operands[i] = Operand::New(Type::new(half, cx.ty(v).shape.clone()), cx.role(v));
    }
    match cx.check(&*node.op, &operands) {
        Err(reason) => return Outcome::NearMiss(reason),
        Ok(types) if types.iter().any(|t| t.dtype != half) => return Outcome::NoMatch,
        Ok(_) => {}
    }
    let op = node.op.clone();
    Outcome::Patch(Patch::of_node(cx.graph(), id, node.operands.to_vec(), move |b, v| {
        let mut operands = v.to_vec();
        for i in indices {
            operands[i] = b.cast(v[i], half)?;
        }
        let results = b.emit_ref(op, &operands)?;
        results.into_iter().map(|r| Ok(b.cast(r, DType::F32)?)).collect()
    }))
}
