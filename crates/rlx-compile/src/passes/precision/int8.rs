//! Activations of 8 bits for products with block-quantised weights.

use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::quant::BlockType;
use rlx_ir::{DType, NodeId, Type};

use crate::Role;
use crate::precision::Compute;
use crate::rewrite::{Matcher, Numerics, Operand, Outcome, Patch, Rule};

/// `product(x, w)` -> `product(quantize(x), w)`.
pub(super) const QUANTIZE_ACTIVATION: Rule = Rule {
    name: "quantize_activation",
    numerics: Numerics::LowersPrecision,
    doc: "matmul or linear of x with a block-quantised weight -> the same of quantize(x)",
    apply,
};

const TO: BlockType = BlockType::Q8_F32;

fn apply(cx: &Matcher<'_>, id: NodeId) -> Outcome {
    let node = cx.node(id);
    let is_product =
        node.op.is::<Linear>() || matches!(node.op.downcast(), Some(MatMul { transpose_b: true }));
    if cx.policy().compute != Compute::Int8 || !is_product {
        return Outcome::NoMatch;
    }
    let (x, w) = (node.operands[0], node.operands[1]);
    let ty = cx.ty(x);
    let weight = cx.ty(w).dtype;
    let is_weight = weight.is_block() || cx.role(w) == Role::Weight;
    if !ty.dtype.is_float() || !is_weight || cx.role(x) == Role::Weight {
        return Outcome::NoMatch;
    }
    if let Some(keep) = cx.policy().kept(cx.graph(), node) {
        return Outcome::NearMiss(format!("the policy keeps {keep}"));
    }
    if !weight.is_block() {
        return Outcome::NearMiss(format!(
            "the weight is {weight}, and must be of a block type, such as q8_0"
        ));
    }
    // The product with a quantised activation is f32.
    if ty.dtype != DType::F32 {
        return Outcome::NearMiss(format!("the activation is {}, not f32", ty.dtype));
    }
    let k = ty.shape.last().and_then(rlx_ir::Dim::as_usize);
    if !k.is_some_and(|k| k.is_multiple_of(TO.block_elems())) {
        return Outcome::NearMiss(format!("{ty} does not divide into blocks of {}", TO.block_elems()));
    }
    let quantized = Type::new(DType::Block(TO), ty.shape.clone());
    let mut operands: Vec<Operand> = node.operands.iter().map(|&v| v.into()).collect();
    operands[0] = Operand::New(quantized, Role::Activation);
    if let Err(reason) = cx.check_replaces(&*node.op, &operands, &node.results) {
        return Outcome::NearMiss(reason);
    }
    let op = node.op.clone();
    Outcome::Patch(Patch::of_node(cx.graph(), id, node.operands.to_vec(), move |b, v| {
        let mut operands = v.to_vec();
        operands[0] = b.quantize(v[0], TO)?;
        Ok(b.emit_ref(op, &operands)?)
    }))
}
