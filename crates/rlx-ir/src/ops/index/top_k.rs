//! `top_k`: the largest elements of the last axis and their indices.
//!
//! Shapes: `[.., D] -> [.., k], [.., k]`, with `k <= D`; values in descending order. Dtypes: float or integer; values have the
//! operand's type, indices are i32. Numerics: moves values; equal ones keep the order of their indices, and NaN counts as
//! larger than every number.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{sort_keys, take_units};
use crate::tensor::Tensor;
use crate::types::Type;

/// The largest elements of the last axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopK {
    /// How many.
    pub k: usize,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "top_k", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(TopK { k: reader.usize("k")? }))
}

impl Op for TopK {
    fn name(&self) -> &str {
        "top_k"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().int("k", i64::try_from(self.k).unwrap_or(i64::MAX))
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        if !(x.dtype.is_float() || x.dtype.is_int()) {
            return Err(operand_error(0, "a float or an integer", x));
        }
        let mut dims = x.shape.dims().to_vec();
        match dims.last_mut() {
            Some(last) if last.as_usize().is_none_or(|size| self.k <= size) => *last = self.k.into(),
            _ => return Err(operand_error(0, format!("at least {} elements on the last axis", self.k), x)),
        }
        Ok(vec![Type::new(x.dtype, dims.clone()), Type::new(DType::I32, dims)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let x = cx.operands[0];
        let size = x.shape().last().copied().unwrap_or(1);
        if self.k > size {
            crate::bail!(InvalidArgument, "k is {}, but the last axis has {size} elements", self.k);
        }
        let keys = sort_keys(x)?;
        let (mut positions, mut indices) = (Vec::new(), Vec::new());
        for row in 0..keys.len().checked_div(size).unwrap_or(0) {
            let mut order: Vec<usize> = (0..size).collect();
            order.sort_by_key(|&i| std::cmp::Reverse(keys[row * size + i]));
            for &i in &order[..self.k] {
                positions.push(row * size + i);
                indices.push(i64::try_from(i).unwrap_or(i64::MAX));
            }
        }
        let values = take_units(x, &cx.results[0], positions)?;
        let indices = Tensor::from_i64(cx.results[1].clone(), &indices)?;
        Ok(vec![Evaluated::moved(values), Evaluated::moved(indices)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(operands[0].shape.elems(), operands, results)
    }
}

impl Builder {
    /// The `k` largest elements of the last axis of `x`, and their indices.
    ///
    /// # Errors
    /// `InvalidArgument` where the last axis has fewer elements, or the dtype is no number.
    pub fn top_k(&mut self, x: Value, k: usize) -> Result<(Value, Value)> {
        match self.emit(TopK { k }, &[x])?.as_slice() {
            [values, indices] => Ok((*values, *indices)),
            other => crate::bail!(Bug, "top_k has {} results, not two", other.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attr_refusal, eval, floats, infer, ints, refusal, round_trip, try_eval_as};

    #[test]
    fn values_keep_the_dtype_and_indices_are_i32() {
        assert_eq!(infer(&TopK { k: 4 }, &["f16[N, 9]"]).unwrap(), ["f16[N, 4]", "i32[N, 4]"]);
        assert_eq!(infer(&TopK { k: 2 }, &["i64[N, M]"]).unwrap(), ["i64[N, 2]", "i32[N, 2]"]);
        assert!(refusal(&TopK { k: 5 }, &["f32[N, 4]"]).contains("at least 5 elements"));
        assert!(refusal(&TopK { k: 1 }, &["f32[]"]).contains("at least 1 elements"));
        assert!(refusal(&TopK { k: 1 }, &["bool[4]"]).starts_with("operand 0"));
        assert!(attr_refusal("top_k", "k = -1").contains("k must be"));
        let x = floats(DType::F32, &[1], &[1.0]);
        let e = try_eval_as(TopK { k: 2 }, &[("f32[N]", x)]).unwrap_err();
        assert!(e.message().contains("k is 2, but the last axis has 1"), "{e}");
    }

    #[test]
    fn each_row_descends_with_nan_first_and_ties_in_order() {
        let x = floats(DType::F32, &[2, 4], &[1.0, 3.0, 2.0, 3.0, -0.0, f64::NAN, 0.0, f64::INFINITY]);
        let out = eval(TopK { k: 3 }, &[x]);
        assert_eq!(out[1].to_i64().unwrap(), [1, 3, 2, 1, 3, 0]);
        let values = out[0].to_f64().unwrap();
        assert_eq!(values[..3], [3.0, 3.0, 2.0]);
        assert!(values[3].is_nan() && values[4] == f64::INFINITY && values[5].is_sign_negative());
        let out = eval(TopK { k: 2 }, &[ints(DType::I64, &[3], &[i64::MAX - 1, -1, i64::MAX])]);
        assert_eq!(out[0].to_i64().unwrap(), [i64::MAX, i64::MAX - 1]);
        let out = eval(TopK { k: 0 }, &[ints(DType::I64, &[1, 0], &[])]);
        assert_eq!(out[0].shape(), [1, 0]);
    }

    #[test]
    fn the_text_form_round_trips() {
        assert_eq!(round_trip(TopK { k: 4 }, &["f32[N, 9]"]), "top_k %x0 {k = 4}");
    }
}
