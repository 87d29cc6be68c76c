//! `softmax`: `exp(scale * x)`, divided by its sum along an axis.
//!
//! Shapes: `[...] -> [...]`.
//! Dtypes: floats; the result has the operand's dtype.
//! Numerics: the largest element is subtracted first, all in f64, rounded once. A row in which every scaled element is
//! minus infinity gives zeros. The tolerance counts the rounding of `scale * x`, which `exp` turns into a relative
//! error of that size.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity};
use crate::ops::composite::{cast_to, check_float, scale_by, wide_dtype};
use crate::ops::reduce::reduce::KeepDims;
use crate::ops::util::{resolve_axis, split_at};
use crate::types::Type;

/// Softmax along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    /// The axis; negative ones count from the back.
    pub axis: i64,
    /// The factor of the elements.
    pub scale: f64,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "softmax", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let axis = reader.opt_int("axis")?.unwrap_or(-1);
    Ok(Arc::new(Softmax { axis, scale: reader.opt_float("scale")?.unwrap_or(1.0) }))
}

/// The weights `exp(s - max)`, normalised, of finite scores or minus infinity; zeros where all are minus infinity.
///
/// `s_terms` are the absolute terms of each score; they are replaced by those of the weights.
pub(crate) fn softmax_row(scores: &mut [f64], s_terms: &mut [f64]) {
    let nan = scores.iter().any(|s| s.is_nan());
    let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY && !nan {
        scores.fill(0.0);
        s_terms.fill(0.0);
        return;
    }
    let mut sum = 0.0;
    for s in scores.iter_mut() {
        *s = if nan { f64::NAN } else { libm::exp(*s - max) };
        sum += *s;
    }
    let mut mean_terms = 0.0;
    for (s, t) in scores.iter_mut().zip(s_terms.iter_mut()) {
        *s /= sum;
        // A score of minus infinity is exact.
        *t = if *s == 0.0 || !t.is_finite() { 0.0 } else { *t + max.abs() };
        mean_terms += *s * *t;
    }
    for (s, t) in scores.iter().zip(s_terms.iter_mut()) {
        *t = s * (1.0 + *t + mean_terms);
    }
}

/// Emits the softmax of `x` along `axis`, in its dtype. Where `visible` is given, other elements count as minus
/// infinity.
pub(crate) fn emit_softmax(b: &mut Builder, x: Value, axis: i64, visible: Option<Value>) -> Result<Value> {
    let dtype = b.ty(x).dtype;
    let lowest = b.scalar(dtype, if dtype == DType::F64 { f64::MIN } else { f64::from(f32::MIN) })?;
    let zero = b.scalar(dtype, 0.0)?;
    let seen = match visible {
        Some(visible) => b.select(visible, x, lowest)?,
        None => x,
    };
    let max = b.reduce_max(seen, &[axis], KeepDims::Yes)?;
    // A row of minus infinities has a finite bound subtracted, so that it stays minus infinity.
    let max = b.max(max, lowest)?;
    let shifted = b.sub(seen, max)?;
    let mut weights = b.exp(shifted)?;
    if let Some(visible) = visible {
        weights = b.select(visible, weights, zero)?;
    }
    let sum = b.reduce_sum(weights, &[axis], KeepDims::Yes)?;
    // The largest element adds 1; a sum below that belongs to a row without elements.
    let one = b.scalar(dtype, 1.0)?;
    let sum = b.max(sum, one)?;
    b.div(weights, sum)
}

impl Op for Softmax {
    fn name(&self) -> &str {
        "softmax"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        let attrs = Attrs::new().int("axis", self.axis);
        if self.scale == 1.0 { attrs } else { attrs.float("scale", self.scale) }
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        check_float(0, &operands[0], 1)?;
        resolve_axis(self.axis, operands[0].rank())?;
        Ok(operands.to_vec())
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        let mut values = cx.operands[0].to_f64()?;
        let mut abs = vec![0.0; values.len()];
        let (outer, width, inner) = split_at(&ty.shape, resolve_axis(self.axis, ty.shape.len())?);
        for o in 0..outer {
            for i in 0..inner {
                let at = |k: usize| (o * width + k) * inner + i;
                let mut row: Vec<f64> = (0..width).map(|k| values[at(k)] * self.scale).collect();
                let mut terms: Vec<f64> = row.iter().map(|v| v.abs()).collect();
                softmax_row(&mut row, &mut terms);
                for k in 0..width {
                    (values[at(k)], abs[at(k)]) = (row[k], terms[k]);
                }
            }
        }
        Ok(vec![Evaluated::computed(ty, values, abs, width)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 6.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let (dtype, wide) = (b.ty(operands[0]).dtype, wide_dtype(b, operands));
        let x = cast_to(b, operands[0], wide)?;
        let x = scale_by(b, x, self.scale)?;
        let y = emit_softmax(b, x, self.axis, None)?;
        Ok(Some(vec![cast_to(b, y, dtype)?]))
    }
}

impl Builder {
    /// `exp(scale * x)`, divided by its sum along `axis`.
    ///
    /// # Errors
    /// `InvalidArgument` where `x` is no float or `axis` is out of range.
    pub fn softmax(&mut self, x: Value, axis: i64, scale: f64) -> Result<Value> {
        self.emit_one(Softmax { axis, scale }, &[x])
    }
}
