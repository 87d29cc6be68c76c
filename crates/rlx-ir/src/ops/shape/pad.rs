//! `pad`: adds elements of one value before and after each axis.
//!
//! Shapes: `[d0, d1, ...] -> [low[0] + d0 + high[0], ...]`; the amounts may depend on symbols and are not negative. Dtypes: any
//! but block types; for integers and `bool` the value must be one of the type's. Numerics: moves bytes; the value is rounded
//! once to the dtype.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::error::{Error, Result};
use crate::op::{EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{for_each_index, strides};
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType, Type};

/// Adds elements before and after each axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Pad {
    /// The number of elements before each axis.
    pub low: Shape,
    /// The number of elements after each axis.
    pub high: Shape,
    /// The value of the elements that are added.
    pub value: f64,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "pad", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Pad {
        low: reader.shape("low")?,
        high: reader.shape("high")?,
        value: reader.opt_float("value")?.unwrap_or(0.0),
    }))
}

impl Op for Pad {
    fn name(&self) -> &str {
        "pad"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().dims("low", self.low.dims()).dims("high", self.high.dims()).float("value", self.value)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        if x.dtype.is_block() {
            return Err(operand_error(0, "a dtype without blocks", x));
        }
        if self.low.rank() != x.rank() || self.high.rank() != x.rank() {
            let expected = format!("as many axes as low {} and high {}", self.low, self.high);
            return Err(operand_error(0, expected, x));
        }
        let mut amounts = self.low.dims().iter().chain(self.high.dims());
        if let Some(amount) = amounts.find(|d| d.as_const().is_some_and(|v| v < 0)) {
            crate::bail!(InvalidArgument, "{amount} elements cannot be added");
        }
        if !x.dtype.is_float() {
            let rounded = Tensor::from_f64(TensorType::new(x.dtype, []), &[self.value])?.to_f64()?;
            if rounded != [self.value] {
                crate::bail!(InvalidArgument, "value {:?} is none of {}", self.value, x.dtype);
            }
        }
        let sides = self.low.dims().iter().zip(self.high.dims());
        let dims = sides.zip(x.shape.dims()).map(|((low, high), d)| low.clone() + d.clone() + high.clone());
        Ok(vec![Type::new(x.dtype, dims.collect::<Vec<_>>())])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (x, ty) = (cx.operands[0], &cx.results[0]);
        let low = self.low.eval(cx.bindings)?;
        self.high.eval(cx.bindings)?;
        let value = Tensor::from_f64(TensorType::new(ty.dtype, []), &[self.value])?;
        let (size, from) = (value.bytes().len(), strides(x.shape()));
        let mut bytes = Vec::with_capacity(ty.bytes()?);
        for_each_index(&ty.shape, |index| {
            // Where the element comes from, if every axis is within the operand.
            let at = index.iter().zip(&low).zip(x.shape().iter().zip(&from)).try_fold(
                0,
                |at, ((&i, &low), (&size, &stride))| {
                    i.checked_sub(low).filter(|i| *i < size).map(|i| at + i * stride)
                },
            );
            bytes.extend_from_slice(at.map_or(value.bytes(), |at| &x.bytes()[at * size..][..size]));
        });
        Ok(vec![Evaluated::moved(Tensor::from_bytes(ty.clone(), bytes)?)])
    }
}

impl Builder {
    /// `x` with `low` elements before and `high` after each axis.
    ///
    /// # Errors
    /// `InvalidArgument` where there are not as many amounts as axes, or the dtype has no such value.
    pub fn pad(
        &mut self,
        x: Value,
        low: impl Into<Shape>,
        high: impl Into<Shape>,
        value: f64,
    ) -> Result<Value> {
        self.emit_one(Pad { low: low.into(), high: high.into(), value }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{
        attr_refusal, eval_one, floats, infer_one, ints, refusal, round_trip, try_eval_as,
    };
    use crate::{DType, Dim};

    fn by(low: impl Into<Shape>, high: impl Into<Shape>, value: f64) -> Pad {
        Pad { low: low.into(), high: high.into(), value }
    }

    #[test]
    fn sizes_grow_by_both_sides() {
        let op = by([0.into(), Dim::symbol("M")], [Dim::from(1), 2.into()], 0.0);
        assert_eq!(infer_one(&op, &["f32[N, 3]"]), "f32[N + 1, M + 5]");
        assert_eq!(infer_one(&by(Shape::scalar(), Shape::scalar(), 0.0), &["f32[]"]), "f32[]");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(refusal(&by([1], [1], 0.0), &["f32[N, 3]"]).contains("as many axes as low [1]"));
        assert!(refusal(&by([-1], [1], 0.0), &["f32[3]"]).contains("-1 elements cannot be added"));
        assert!(refusal(&by([0], [32], 0.0), &["q8_0[32]"]).contains("without blocks"));
        assert!(refusal(&by([0], [1], 0.5), &["i32[3]"]).contains("value 0.5 is none of i32"));
        assert!(refusal(&by([0], [1], -1.0), &["u8[3]"]).contains("none of u8"));
        assert!(refusal(&by([0], [1], f64::NAN), &["i64[3]"]).contains("none of i64"));
        assert!(refusal(&by([0], [1], 2.0), &["bool[3]"]).contains("none of bool"));
        assert!(attr_refusal("pad", "low = [0]").contains("high is missing"));
        let op = by([Dim::symbol("N") - 3.into()], [0], 0.0);
        let e = try_eval_as(op, &[("f32[N]", floats(DType::F32, &[2], &[1.0, 2.0]))]).unwrap_err();
        assert!(e.message().contains("size N - 3 is -1"), "{e}");
    }

    #[test]
    fn the_value_surrounds_the_operand() {
        let x = ints(DType::I64, &[1, 2], &[1 << 60, 3]);
        let y = eval_one(by([1, 0], [0, 1], -7.0), &[x]);
        assert_eq!((y.shape(), y.to_i64().unwrap()), (&[2usize, 3][..], vec![-7, -7, -7, 1 << 60, 3, -7]));
        let y = eval_one(by([0], [1], f64::NEG_INFINITY), &[floats(DType::F16, &[1], &[1.5])]);
        assert_eq!(y.to_f64().unwrap(), [1.5, f64::NEG_INFINITY]);
        let y = eval_one(by([2], [0], 0.1), &[floats(DType::F32, &[0], &[])]);
        assert_eq!(y.to_f32().unwrap(), [0.1, 0.1]);
    }

    #[test]
    fn the_text_form_round_trips() {
        let text = round_trip(by(["N"], [2], f64::NEG_INFINITY), &["f32[M]"]);
        assert_eq!(text, "pad %x0 {low = [N], high = [2], value = -inf}");
        assert!(round_trip(by([0], [2], f64::NAN), &["f32[M]"]).ends_with("value = nan}"));
        assert!(round_trip(by([0], [2], 1e-300), &["f32[M]"]).ends_with("value = 1e-300}"));
    }
}
