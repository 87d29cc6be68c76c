//! `rms_norm`: root mean square normalisation (Zhang and Sennrich 2019) over the last axis.
//!
//! Shapes: `x[..., H], weight[H] -> [..., H]`.
//! Dtypes: floats, each its own; the result has the dtype of `x`.
//! Numerics: `x / sqrt(mean(x^2) + eps) * weight` in f64, rounded once; with `unit_offset` the factor is
//! `1 + weight`, as in models whose stored weights are around 0.

use std::sync::Arc;

use super::layer_norm::{check_row, read_eps};
use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity};
use crate::ops::composite::{cast_to, check_float, wide_dtype};
use crate::ops::reduce::reduce::KeepDims;
use crate::types::{TensorType, Type};

/// Root mean square normalisation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RmsNorm {
    /// What is added to the mean of squares.
    pub eps: f64,
    /// Whether the factor is `1 + weight`.
    pub unit_offset: bool,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "rms_norm", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(RmsNorm::read(reader)?))
}

impl RmsNorm {
    /// The attributes.
    pub(super) fn read(reader: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Self { eps: read_eps(reader)?, unit_offset: reader.flag("unit_offset")? })
    }

    /// The norm of `x` (rows of the last axis of `ty`), with the sums of absolute terms.
    pub(super) fn eval_rows(self, ty: &TensorType, x: &[f64], weight: &[f64]) -> Result<Evaluated> {
        let width = weight.len();
        let (mut values, mut abs) = (Vec::with_capacity(x.len()), Vec::with_capacity(x.len()));
        let offset = f64::from(u8::from(self.unit_offset));
        for row in x.chunks_exact(width.max(1)) {
            let mean_square = row.iter().map(|v| v * v).sum::<f64>() / width as f64;
            let inverse = 1.0 / (mean_square + self.eps).sqrt();
            for (&v, &w) in row.iter().zip(weight) {
                values.push(v * inverse * (offset + w));
                abs.push((v * inverse).abs() * (offset + w.abs()));
            }
        }
        Evaluated::computed(ty, values, abs, width)
    }

    /// Emits the norm of `x` in f32 or f64, with one rounding to `dtype` at the end.
    pub(super) fn emit_wide(self, b: &mut Builder, x: Value, weight: Value, dtype: DType) -> Result<Value> {
        let wide = wide_dtype(b, &[x, weight]);
        let x = cast_to(b, x, wide)?;
        let square = b.mul(x, x)?;
        let mean = b.reduce_mean(square, &[-1], KeepDims::Yes)?;
        let eps = b.scalar(wide, self.eps)?;
        let mean = b.add(mean, eps)?;
        let inverse = b.rsqrt(mean)?;
        let normed = b.mul(x, inverse)?;
        let mut weight = cast_to(b, weight, wide)?;
        if self.unit_offset {
            let one = b.scalar(wide, 1.0)?;
            weight = b.add(weight, one)?;
        }
        let y = b.mul(normed, weight)?;
        cast_to(b, y, dtype)
    }
}

impl Op for RmsNorm {
    fn name(&self) -> &str {
        "rms_norm"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().float("eps", self.eps).flag("unit_offset", self.unit_offset)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 2..=2)?;
        check_float(0, &operands[0], 1)?;
        check_row(1, &operands[1], &operands[0])?;
        Ok(vec![operands[0].clone()])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (x, weight) = (cx.operands[0].to_f64()?, cx.operands[1].to_f64()?);
        Ok(vec![self.eval_rows(&cx.results[0], &x, &weight)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 5.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let dtype = b.ty(operands[0]).dtype;
        Ok(Some(vec![self.emit_wide(b, operands[0], operands[1], dtype)?]))
    }
}

impl Builder {
    /// Root mean square normalisation of `x` over its last axis.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn rms_norm(&mut self, x: Value, weight: Value, norm: RmsNorm) -> Result<Value> {
        self.emit_one(norm, &[x, weight])
    }
}
