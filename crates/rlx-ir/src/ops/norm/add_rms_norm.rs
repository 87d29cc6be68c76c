//! `add_rms_norm`: a residual sum and its root mean square normalisation.
//!
//! Shapes: `x[..., H], residual[..., H], weight[H] -> sum[..., H], normed[..., H]`.
//! Dtypes: `x` and `residual` have one float dtype, which both results have; `weight` is a float.
//! Numerics: `sum` is rounded once; `normed` is what `rms_norm` gives for the rounded `sum`, rounded once.

use std::sync::Arc;

use super::add_layer_norm::{eval_sum, infer_add_norm};
use super::rms_norm::RmsNorm;
use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity};
use crate::types::Type;

/// A residual sum and its root mean square normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AddRmsNorm {
    /// The normalisation.
    pub norm: RmsNorm,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "add_rms_norm", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(AddRmsNorm { norm: RmsNorm::read(reader)? }))
}

impl Op for AddRmsNorm {
    fn name(&self) -> &str {
        "add_rms_norm"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        self.norm.attrs()
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 3..=3)?;
        infer_add_norm(operands)
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let sum = eval_sum(cx, &cx.results[0])?;
        let weight = cx.operands[2].to_f64()?;
        let normed = self.norm.eval_rows(&cx.results[1], &sum.tensor.to_f64()?, &weight)?;
        Ok(vec![sum, normed])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 6.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let sum = b.add(operands[0], operands[1])?;
        let dtype = b.ty(sum).dtype;
        let normed = self.norm.emit_wide(b, sum, operands[2], dtype)?;
        Ok(Some(vec![sum, normed]))
    }
}

impl Builder {
    /// `x + residual` and its root mean square normalisation.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn add_rms_norm(
        &mut self,
        x: Value,
        residual: Value,
        weight: Value,
        norm: RmsNorm,
    ) -> Result<(Value, Value)> {
        let results = self.emit(AddRmsNorm { norm }, &[x, residual, weight])?;
        Ok((results[0], results[1]))
    }
}
