//! `select`: the element of one operand or of the other.
//!
//! Shapes: condition and both operands broadcast, aligned at the last axis. Dtypes: the condition is `bool`; the operands have
//! the same type, any but a block type, which is the result's. Numerics: moves bytes only, so that NaN of the side that is
//! not taken does no harm.

use std::sync::Arc;

use crate::attrs::AttrReader;
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{broadcast_positions, broadcast_shapes};
use crate::tensor::Tensor;
use crate::types::Type;

/// The second operand where the first is true, else the third.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Select;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[OpDef { name: "select", tier: Tier::Core, parse }];

fn parse(_: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Select))
}

impl Op for Select {
    fn name(&self) -> &str {
        "select"
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 3..=3)?;
        let (cond, a, b) = (&operands[0], &operands[1], &operands[2]);
        if cond.dtype != DType::Bool {
            return Err(operand_error(0, "bool", cond));
        }
        if a.dtype.is_block() {
            return Err(operand_error(1, "a dtype without blocks", a));
        }
        if b.dtype != a.dtype {
            return Err(operand_error(2, a.dtype, b));
        }
        let shape = broadcast_shapes(&cond.shape, &broadcast_shapes(&a.shape, &b.shape)?)?;
        Ok(vec![Type::new(a.dtype, shape)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        let at = |i: usize| broadcast_positions(cx.operands[i].shape(), &ty.shape);
        let (cond, size) = (cx.operands[0].to_i64()?, ty.dtype.block_bytes());
        let mut bytes = Vec::with_capacity(ty.bytes()?);
        for ((c, a), b) in at(0).into_iter().zip(at(1)).zip(at(2)) {
            let (from, at) = if cond[c] != 0 { (cx.operands[1], a) } else { (cx.operands[2], b) };
            bytes.extend_from_slice(&from.bytes()[at * size..][..size]);
        }
        Ok(vec![Evaluated::moved(Tensor::from_bytes(ty.clone(), bytes)?)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems(), operands, results)
    }
}

impl Builder {
    /// `a` where `cond` is true, else `b`.
    ///
    /// # Errors
    /// `InvalidArgument` where `cond` is not `bool`, dtypes differ, or shapes do not broadcast.
    pub fn select(&mut self, cond: Value, a: Value, b: Value) -> Result<Value> {
        self.emit_one(Select, &[cond, a, b])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{eval_one, floats, infer_one, ints, refusal, round_trip};

    #[test]
    fn three_shapes_broadcast() {
        assert_eq!(infer_one(&Select, &["bool[N, 1]", "f16[4]", "f16[]"]), "f16[N, 4]");
        assert_eq!(infer_one(&Select, &["bool[]", "i64[N]", "i64[N]"]), "i64[N]");
    }

    #[test]
    fn dtypes_that_do_not_fit_are_refused() {
        assert!(refusal(&Select, &["i32[2]", "f32[2]", "f32[2]"]).starts_with("operand 0: expected bool"));
        assert!(refusal(&Select, &["bool[32]", "q8_0[32]", "q8_0[32]"]).starts_with("operand 1"));
        assert!(refusal(&Select, &["bool[2]", "f32[2]", "f16[2]"]).starts_with("operand 2: expected f32"));
        assert!(refusal(&Select, &["bool[2]", "f32[2]", "f32[3]"]).contains("do not broadcast"));
        assert!(refusal(&Select, &["bool[2]", "f32[2]"]).contains("expected 3 operands"));
    }

    #[test]
    fn the_side_that_is_not_taken_does_no_harm() {
        let cond = ints(DType::Bool, &[2, 1], &[1, 0]);
        let a = floats(DType::F32, &[3], &[1.0, 2.0, 3.0]);
        let b = floats(DType::F32, &[2, 3], &[f64::NAN, f64::NAN, f64::NAN, 4.0, 5.0, f64::INFINITY]);
        let y = eval_one(Select, &[cond.clone(), a, b]);
        assert_eq!(y.to_f64().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, f64::INFINITY]);
        let (a, b) = (ints(DType::I64, &[], &[i64::MAX]), ints(DType::I64, &[], &[i64::MIN]));
        assert_eq!(eval_one(Select, &[cond, a, b]).to_i64().unwrap(), [i64::MAX, i64::MIN]);
    }

    #[test]
    fn the_text_form_round_trips() {
        let types = ["bool[N]", "i8[N]", "i8[]"];
        assert_eq!(round_trip(Select, &types), "select %x0, %x1, %x2");
    }
}
