//! `iota`: each element is its index along an axis.
//!
//! Shapes: `-> shape`. Dtypes: float or integer. Numerics: floats round once; an index that an integer type cannot hold is an
//! error.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity};
use crate::ops::util::{for_each_index, resolve_axis};
use crate::tensor::Tensor;
use crate::types::{Shape, Type};

/// Each element is its index along an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iota {
    /// The shape of the result.
    pub shape: Shape,
    /// The axis that is counted; a negative one counts from the back.
    pub axis: i64,
    /// The dtype of the result.
    pub dtype: DType,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "iota", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Iota {
        shape: reader.shape("shape")?,
        axis: reader.int("axis")?,
        dtype: reader.dtype("dtype")?,
    }))
}

impl Op for Iota {
    fn name(&self) -> &str {
        "iota"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().dims("shape", self.shape.dims()).int("axis", self.axis).dtype("dtype", self.dtype)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 0..=0)?;
        if !(self.dtype.is_float() || self.dtype.is_int()) {
            crate::bail!(InvalidArgument, "dtype must be a float or an integer, got {}", self.dtype);
        }
        resolve_axis(self.axis, self.shape.rank())?;
        if let Some(dim) = self.shape.dims().iter().find(|d| d.as_const().is_some_and(|v| v < 0)) {
            crate::bail!(InvalidArgument, "size {dim} is negative");
        }
        Ok(vec![Type::new(self.dtype, self.shape.clone())])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        let axis = resolve_axis(self.axis, ty.shape.len())?;
        let mut values = Vec::new();
        for_each_index(&ty.shape, |index| values.push(i64::try_from(index[axis]).unwrap_or(i64::MAX)));
        let tensor = Tensor::from_i64(ty.clone(), &values)?;
        if ty.dtype.is_int() && tensor.to_i64()? != values {
            crate::bail!(
                InvalidArgument,
                "{} cannot hold the indices of {} elements",
                ty.dtype,
                ty.shape[axis]
            );
        }
        Ok(vec![Evaluated::moved(tensor)])
    }
}

impl Builder {
    /// A tensor whose elements are their index along `axis`.
    ///
    /// # Errors
    /// `InvalidArgument` where the axis is out of range, or the dtype is no number.
    pub fn iota(&mut self, shape: impl Into<Shape>, axis: i64, dtype: DType) -> Result<Value> {
        self.emit_one(Iota { shape: shape.into(), axis, dtype }, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dim;
    use crate::ops::testing::{attr_refusal, eval_one, eval_refusal, infer_one, refusal, round_trip};

    fn of(shape: impl Into<Shape>, axis: i64, dtype: DType) -> Iota {
        Iota { shape: shape.into(), axis, dtype }
    }

    #[test]
    fn either_axis_can_be_counted() {
        let at = |axis| eval_one(of([2, 3], axis, DType::I32), &[]).to_i64().unwrap();
        assert_eq!(at(0), [0, 0, 0, 1, 1, 1]);
        assert_eq!(at(-1), [0, 1, 2, 0, 1, 2]);
        assert_eq!(eval_one(of([0, 3], 0, DType::F32), &[]).shape(), [0, 3]);
        let last = eval_one(of([2050], 0, DType::F16), &[]).to_f64().unwrap()[2049];
        assert_eq!(last, 2048.0);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(refusal(&of([2], 1, DType::I32), &[]).contains("axis 1 is out of range"));
        assert!(refusal(&of([2], 0, DType::Bool), &[]).contains("a float or an integer"));
        assert!(refusal(&of([-2], 0, DType::I32), &[]).contains("size -2 is negative"));
        assert!(refusal(&of([2], 0, DType::I32), &["i32[2]"]).contains("expected 0 operands"));
        assert!(eval_refusal(of([129], 0, DType::I8), &[]).contains("i8 cannot hold the indices of 129"));
        assert_eq!(eval_one(of([128], 0, DType::I8), &[]).to_i64().unwrap()[127], 127);
        assert!(attr_refusal("iota", "shape = [2], axis = 0").contains("dtype is missing"));
    }

    #[test]
    fn the_text_form_round_trips() {
        let op = of([Dim::symbol("N"), 2.into()], 0, DType::U32);
        assert_eq!(infer_one(&op, &[]), "u32[N, 2]");
        assert_eq!(round_trip(op, &[]), "iota {shape = [N, 2], axis = 0, dtype = u32}");
    }
}
