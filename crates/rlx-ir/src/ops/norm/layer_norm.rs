//! `layer_norm`: layer normalisation (Ba, Kiros and Hinton 2016) over the last axis.
//!
//! Shapes: `x[..., H], weight[H][, bias[H]] -> [..., H]`.
//! Dtypes: floats, each its own; the result has the dtype of `x`.
//! Numerics: `(x - mean) / sqrt(variance + eps) * weight + bias` in f64, rounded once; the variance is the mean of
//! `(x - mean)^2`. The tolerance holds for kernels that subtract the mean before they square; the mean of squares
//! minus the square of the mean loses all digits where the mean is large.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity};
use crate::ops::composite::{cast_to, check_float, check_float_shape, wide_dtype};
use crate::ops::reduce::reduce::KeepDims;
use crate::types::{Shape, TensorType, Type};

/// Layer normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerNorm {
    /// What is added to the variance.
    pub eps: f64,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "layer_norm", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(LayerNorm { eps: read_eps(reader)? }))
}

/// The attribute `eps`, which is finite and not negative.
pub(super) fn read_eps(reader: &mut AttrReader<'_>) -> Result<f64> {
    let eps = reader.float("eps")?;
    if !(eps.is_finite() && eps >= 0.0) {
        crate::bail!(InvalidArgument, "{}: eps must be finite and not negative, got {eps}", reader.op());
    }
    Ok(eps)
}

/// Checks that operand `index` scales or shifts the last axis of `x`.
pub(super) fn check_row(index: usize, ty: &Type, x: &Type) -> Result<()> {
    let last: Shape = x.shape.last().cloned().into_iter().collect();
    check_float_shape(index, ty, &last)
}

impl LayerNorm {
    /// The norm of `x` (rows of the last axis of `ty`), with the sums of absolute terms.
    pub(super) fn eval_rows(
        self,
        ty: &TensorType,
        x: &[f64],
        weight: &[f64],
        bias: Option<&[f64]>,
    ) -> Result<Evaluated> {
        let width = weight.len();
        let (mut values, mut abs) = (Vec::with_capacity(x.len()), Vec::with_capacity(x.len()));
        for row in x.chunks_exact(width.max(1)) {
            let n = width as f64;
            let mean = row.iter().sum::<f64>() / n;
            let mean_abs = row.iter().map(|v| v.abs()).sum::<f64>() / n;
            let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n;
            let inverse = 1.0 / (variance + self.eps).sqrt();
            for (i, &v) in row.iter().enumerate() {
                let scaled = (v - mean) * inverse * weight[i];
                let shift = bias.map_or(0.0, |b| b[i]);
                values.push(scaled + shift);
                let centred = (v.abs() + mean_abs) * inverse * weight[i].abs();
                abs.push(centred + scaled.abs() + shift.abs());
            }
        }
        Evaluated::computed(ty, values, abs, width)
    }

    /// Emits the norm of `x`, in its dtype.
    pub(super) fn emit(self, b: &mut Builder, x: Value, weight: Value, bias: Option<Value>) -> Result<Value> {
        let dtype = b.ty(x).dtype;
        let mean = b.reduce_mean(x, &[-1], KeepDims::Yes)?;
        let centred = b.sub(x, mean)?;
        let square = b.mul(centred, centred)?;
        let variance = b.reduce_mean(square, &[-1], KeepDims::Yes)?;
        let eps = b.scalar(dtype, self.eps)?;
        let variance = b.add(variance, eps)?;
        let inverse = b.rsqrt(variance)?;
        let normed = b.mul(centred, inverse)?;
        let weight = cast_to(b, weight, dtype)?;
        let scaled = b.mul(normed, weight)?;
        match bias {
            None => Ok(scaled),
            Some(bias) => {
                let bias = cast_to(b, bias, dtype)?;
                b.add(scaled, bias)
            }
        }
    }

    /// Emits the norm of `x` in f32 or f64, with one rounding to `dtype` at the end.
    pub(super) fn emit_wide(self, b: &mut Builder, operands: &[Value], dtype: DType) -> Result<Value> {
        let wide = wide_dtype(b, operands);
        let x = cast_to(b, operands[0], wide)?;
        let y = self.emit(b, x, operands[1], operands.get(2).copied())?;
        cast_to(b, y, dtype)
    }
}

impl Op for LayerNorm {
    fn name(&self) -> &str {
        "layer_norm"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().float("eps", self.eps)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 2..=3)?;
        check_float(0, &operands[0], 1)?;
        for (i, ty) in operands.iter().enumerate().skip(1) {
            check_row(i, ty, &operands[0])?;
        }
        Ok(vec![operands[0].clone()])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (x, weight) = (cx.operands[0].to_f64()?, cx.operands[1].to_f64()?);
        let bias = cx.operands.get(2).map(|b| b.to_f64()).transpose()?;
        Ok(vec![self.eval_rows(&cx.results[0], &x, &weight, bias.as_deref())?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 8.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let dtype = b.ty(operands[0]).dtype;
        Ok(Some(vec![self.emit_wide(b, operands, dtype)?]))
    }
}

impl Builder {
    /// Layer normalisation of `x` over its last axis.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn layer_norm(&mut self, x: Value, weight: Value, bias: Option<Value>, eps: f64) -> Result<Value> {
        let operands: Vec<Value> = [x, weight].into_iter().chain(bias).collect();
        self.emit_one(LayerNorm { eps }, &operands)
    }
}
