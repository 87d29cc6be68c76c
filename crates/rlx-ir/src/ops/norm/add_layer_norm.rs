//! `add_layer_norm`: a residual sum and its layer normalisation.
//!
//! Shapes: `x[..., H], residual[..., H], weight[H][, bias[H]] -> sum[..., H], normed[..., H]`.
//! Dtypes: `x` and `residual` have one float dtype, which both results have; `weight` and `bias` are floats.
//! Numerics: `sum` is rounded once; `normed` is what `layer_norm` gives for the rounded `sum`, rounded once.

use std::sync::Arc;

use super::layer_norm::{LayerNorm, check_row, read_eps};
use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::composite::check_float;
use crate::types::{TensorType, Type};

/// A residual sum and its layer normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AddLayerNorm {
    /// What is added to the variance.
    pub eps: f64,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "add_layer_norm", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(AddLayerNorm { eps: read_eps(reader)? }))
}

/// Checks `x`, `residual` and what follows; gives the types of sum and norm.
pub(super) fn infer_add_norm(operands: &[Type]) -> Result<Vec<Type>> {
    let x = &operands[0];
    check_float(0, x, 1)?;
    if operands[1] != *x {
        return Err(operand_error(1, format!("the type of operand 0, {x}"), &operands[1]));
    }
    for (i, ty) in operands.iter().enumerate().skip(2) {
        check_row(i, ty, x)?;
    }
    Ok(vec![x.clone(), x.clone()])
}

/// `x + residual`, rounded.
pub(super) fn eval_sum(cx: &EvalContext<'_>, ty: &TensorType) -> Result<Evaluated> {
    let (x, residual) = (cx.operands[0].to_f64()?, cx.operands[1].to_f64()?);
    let values = x.iter().zip(&residual).map(|(a, b)| a + b).collect();
    let abs = x.iter().zip(&residual).map(|(a, b)| a.abs() + b.abs()).collect();
    Evaluated::computed(ty, values, abs, 1)
}

impl Op for AddLayerNorm {
    fn name(&self) -> &str {
        "add_layer_norm"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().float("eps", self.eps)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 3..=4)?;
        infer_add_norm(operands)
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let sum = eval_sum(cx, &cx.results[0])?;
        let weight = cx.operands[2].to_f64()?;
        let bias = cx.operands.get(3).map(|b| b.to_f64()).transpose()?;
        let norm = LayerNorm { eps: self.eps };
        let normed = norm.eval_rows(&cx.results[1], &sum.tensor.to_f64()?, &weight, bias.as_deref())?;
        Ok(vec![sum, normed])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 9.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let sum = b.add(operands[0], operands[1])?;
        let dtype = b.ty(sum).dtype;
        let norm_operands: Vec<Value> =
            std::iter::once(sum).chain(operands.iter().skip(2).copied()).collect();
        let normed = LayerNorm { eps: self.eps }.emit_wide(b, &norm_operands, dtype)?;
        Ok(Some(vec![sum, normed]))
    }
}

impl Builder {
    /// `x + residual` and its layer normalisation.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn add_layer_norm(
        &mut self,
        x: Value,
        residual: Value,
        weight: Value,
        bias: Option<Value>,
        eps: f64,
    ) -> Result<(Value, Value)> {
        let operands: Vec<Value> = [x, residual, weight].into_iter().chain(bias).collect();
        let results = self.emit(AddLayerNorm { eps }, &operands)?;
        Ok((results[0], results[1]))
    }
}
