//! `l2_normalize`: vectors of length 1.
//!
//! Shapes: `[..., H] -> [..., H]`.
//! Dtypes: floats; the result has the operand's dtype.
//! Numerics: `x / max(|x|, eps)` with the Euclidean norm over the last axis, in f64, rounded once.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity};
use crate::ops::composite::{cast_to, check_float, wide_dtype};
use crate::ops::reduce::reduce::KeepDims;
use crate::types::Type;

/// Vectors of length 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct L2Normalize {
    /// The least length that is divided by; above 0.
    pub eps: f64,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "l2_normalize", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(L2Normalize { eps: reader.opt_float("eps")?.unwrap_or(1e-12) }))
}

impl Op for L2Normalize {
    fn name(&self) -> &str {
        "l2_normalize"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().float("eps", self.eps)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        check_float(0, &operands[0], 1)?;
        if !(self.eps.is_finite() && self.eps > 0.0) {
            crate::bail!(InvalidArgument, "eps must be finite and above 0, got {}", self.eps);
        }
        Ok(operands.to_vec())
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        let mut values = cx.operands[0].to_f64()?;
        let width = ty.shape.last().copied().unwrap_or(1);
        for row in values.chunks_exact_mut(width.max(1)) {
            let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt();
            // `f64::max` would drop a NaN.
            let divisor = if norm < self.eps { self.eps } else { norm };
            row.iter_mut().for_each(|v| *v /= divisor);
        }
        let abs = values.iter().map(|v| v.abs()).collect();
        Ok(vec![Evaluated::computed(ty, values, abs, width)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 3.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let (dtype, wide) = (b.ty(operands[0]).dtype, wide_dtype(b, operands));
        let x = cast_to(b, operands[0], wide)?;
        let square = b.mul(x, x)?;
        let sum = b.reduce_sum(square, &[-1], KeepDims::Yes)?;
        let norm = b.sqrt(sum)?;
        let eps = b.scalar(wide, self.eps)?;
        let divisor = b.max(norm, eps)?;
        let y = b.div(x, divisor)?;
        Ok(Some(vec![cast_to(b, y, dtype)?]))
    }
}

impl Builder {
    /// `x / max(|x|, eps)` over the last axis.
    ///
    /// # Errors
    /// `InvalidArgument` where `x` is no float or `eps` is not above 0.
    pub fn l2_normalize(&mut self, x: Value, eps: f64) -> Result<Value> {
        self.emit_one(L2Normalize { eps }, &[x])
    }
}
