//! `argmax`: the index of the largest element along an axis.
//!
//! Shapes: `[a.., D, b..] -> [a.., b..]`. Dtypes: float, integer or `bool`; the result is i32. Numerics: exact; of several
//! largest the lowest index wins, and NaN counts as larger than every number. An empty axis is an error.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{resolve_axis, sort_keys, split_at};
use crate::tensor::Tensor;
use crate::types::Type;

/// The index of the largest element along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgMax {
    /// The axis; a negative one counts from the back.
    pub axis: i64,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "argmax", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(ArgMax { axis: reader.int("axis")? }))
}

impl Op for ArgMax {
    fn name(&self) -> &str {
        "argmax"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().int("axis", self.axis)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        if x.dtype.is_block() {
            return Err(operand_error(0, "a dtype without blocks", x));
        }
        let mut dims = x.shape.dims().to_vec();
        let size = dims.remove(resolve_axis(self.axis, x.rank())?);
        if size.as_const() == Some(0) {
            return Err(operand_error(0, format!("an axis {} that is not empty", self.axis), x));
        }
        Ok(vec![Type::new(DType::I32, dims)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let x = cx.operands[0];
        let (outer, size, inner) = split_at(x.shape(), resolve_axis(self.axis, x.shape().len())?);
        if size == 0 {
            crate::bail!(InvalidArgument, "axis {} is empty", self.axis);
        }
        let keys = sort_keys(x)?;
        let mut out = Vec::with_capacity(outer * inner);
        for o in 0..outer {
            for i in 0..inner {
                let at = |k: usize| keys[(o * size + k) * inner + i];
                let best = (1..size).fold(0, |best, k| if at(k) > at(best) { k } else { best });
                out.push(i64::try_from(best).unwrap_or(i64::MAX));
            }
        }
        Ok(vec![Evaluated::moved(Tensor::from_i64(cx.results[0].clone(), &out)?)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(operands[0].shape.elems(), operands, results)
    }
}

impl Builder {
    /// The index of the largest element of `x` along `axis`.
    ///
    /// # Errors
    /// `InvalidArgument` where the axis is out of range or empty, or `x` has blocks.
    pub fn argmax(&mut self, x: Value, axis: i64) -> Result<Value> {
        self.emit_one(ArgMax { axis }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{eval_one, floats, infer_one, ints, refusal, round_trip, try_eval_as};

    #[test]
    fn the_axis_goes() {
        assert_eq!(infer_one(&ArgMax { axis: -1 }, &["f16[N, 4]"]), "i32[N]");
        assert_eq!(infer_one(&ArgMax { axis: 0 }, &["i64[3, N]"]), "i32[N]");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(refusal(&ArgMax { axis: 0 }, &["q8_0[32]"]).starts_with("operand 0"));
        assert!(refusal(&ArgMax { axis: 0 }, &["f32[0]"]).contains("not empty"));
        assert!(refusal(&ArgMax { axis: 0 }, &["f32[]"]).contains("out of range"));
        let x = floats(DType::F32, &[0], &[]);
        let e = try_eval_as(ArgMax { axis: 0 }, &[("f32[N]", x)]).unwrap_err();
        assert!(e.message().contains("axis 0 is empty"), "{e}");
    }

    #[test]
    fn the_lowest_index_wins_and_nan_is_largest() {
        let nan = f64::NAN;
        let x = [1., 3., 3., f64::INFINITY, nan, -nan, f64::NEG_INFINITY, -5., -5., -0., 0., -1.];
        let y = eval_one(ArgMax { axis: -1 }, &[floats(DType::F32, &[4, 3], &x)]);
        assert_eq!((y.dtype(), y.to_i64().unwrap()), (DType::I32, vec![1, 1, 1, 0]));
        let y = eval_one(ArgMax { axis: 0 }, &[floats(DType::F32, &[2, 2], &[1., 5., 2., 5.])]);
        assert_eq!(y.to_i64().unwrap(), [1, 0]);
        let y = eval_one(ArgMax { axis: 0 }, &[ints(DType::I64, &[3], &[i64::MIN, i64::MAX - 1, i64::MAX])]);
        assert_eq!(y.to_i64().unwrap(), [2]);
        assert_eq!(eval_one(ArgMax { axis: 0 }, &[ints(DType::Bool, &[2], &[0, 1])]).to_i64().unwrap(), [1]);
    }

    #[test]
    fn the_text_form_round_trips() {
        assert_eq!(round_trip(ArgMax { axis: -1 }, &["f32[N]"]), "argmax %x0 {axis = -1}");
    }
}
