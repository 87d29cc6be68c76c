//! `broadcast`: repeats axes of size 1, and adds leading axes.
//!
//! Shapes: `[...] -> shape`, aligned at the last axis; each size of the operand is 1 or the result's. Dtypes: any; a block type
//! repeats leading axes only. Numerics: moves bytes only; a view with strides of 0.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::error::Result;
use crate::op::{EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{Units, broadcast_positions, broadcast_shapes, take_units};
use crate::types::{Shape, Type};
use crate::view::View;

/// Repeats axes of size 1, and adds leading axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Broadcast {
    /// The shape of the result.
    pub shape: Shape,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "broadcast", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Broadcast { shape: reader.shape("shape")? }))
}

impl Op for Broadcast {
    fn name(&self) -> &str {
        "broadcast"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().dims("shape", self.shape.dims())
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        if broadcast_shapes(&x.shape, &self.shape).ok().as_ref() != Some(&self.shape) {
            return Err(operand_error(0, format!("a shape that broadcasts to {}", self.shape), x));
        }
        if x.dtype.is_block() && x.shape.last() != self.shape.last() {
            return Err(operand_error(0, "a dtype without blocks, as the last axis is repeated", x));
        }
        Ok(vec![Type::new(x.dtype, self.shape.clone())])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (x, ty) = (cx.operands[0], &cx.results[0]);
        let positions = broadcast_positions(&Units::of(x.ty()).shape, &Units::of(ty).shape);
        Ok(vec![Evaluated::moved(take_units(x, ty, positions)?)])
    }

    fn view(&self, operand: &View, _result: &Type) -> Option<View> {
        Some(operand.broadcast(&self.shape))
    }
}

impl Builder {
    /// `x` repeated to `shape`.
    ///
    /// # Errors
    /// `InvalidArgument` where `x` does not broadcast to it.
    pub fn broadcast(&mut self, x: Value, shape: impl Into<Shape>) -> Result<Value> {
        self.emit_one(Broadcast { shape: shape.into() }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{eval_one, floats, infer_one, ints, refusal, round_trip, try_eval_as};
    use crate::{DType, Dim, Tensor};

    fn to(shape: impl Into<Shape>) -> Broadcast {
        Broadcast { shape: shape.into() }
    }

    #[test]
    fn ones_repeat_and_axes_are_added_in_front() {
        let n = Dim::symbol("N");
        assert_eq!(infer_one(&to([n.clone(), 4.into()]), &["f32[4]"]), "f32[N, 4]");
        assert_eq!(infer_one(&to([n.clone(), 4.into()]), &["f32[N, 1]"]), "f32[N, 4]");
        assert_eq!(infer_one(&to([2, 64]), &["q8_0[64]"]), "q8_0[2, 64]");
        for (shape, from) in [([n.clone(), 4.into()], "f32[3]"), ([n, 1.into()], "f32[N, 4]")] {
            assert!(refusal(&to(shape), &[from]).starts_with("operand 0: expected a shape that broadcasts"));
        }
        assert!(refusal(&to([4]), &["f32[1, 4]"]).contains("broadcasts to [4]"));
        assert!(refusal(&to([3]), &["f32[N]"]).contains("operand 0"));
    }

    #[test]
    fn values_repeat_in_order() {
        let x = floats(DType::F32, &[2, 1], &[1.0, 2.0]);
        let y = eval_one(to([2, 2, 3]), &[x]);
        assert_eq!(y.to_f32().unwrap(), [1., 1., 1., 2., 2., 2., 1., 1., 1., 2., 2., 2.]);
        let x = ints(DType::I64, &[], &[1 << 60]);
        let y = eval_one(to([2]), &[x]);
        assert_eq!(y.to_i64().unwrap(), [1 << 60, 1 << 60]);
    }

    #[test]
    fn a_symbol_of_size_one_or_none_is_fine() {
        let shape = to([Dim::from(2), Dim::symbol("N")]);
        let y = try_eval_as(shape.clone(), &[("f32[N]", Tensor::f32([1], &[7.0]).unwrap())]).unwrap();
        assert_eq!(y[0].tensor.to_f32().unwrap(), [7.0, 7.0]);
        let y = try_eval_as(shape, &[("f32[N]", Tensor::f32([0], &[]).unwrap())]).unwrap();
        assert_eq!(y[0].tensor.shape(), [2, 0]);
    }

    #[test]
    fn the_text_form_round_trips() {
        let shape = [Dim::symbol("N") + 1.into(), 4.into()];
        assert_eq!(round_trip(to(shape), &["f32[4]"]), "broadcast %x0 {shape = [N + 1, 4]}");
    }
}
