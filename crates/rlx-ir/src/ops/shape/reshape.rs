//! `reshape`: the same elements in row-major order under another shape.
//!
//! Shapes: `[...] -> shape`, with as many elements; symbolic sizes must be equal as expressions. Dtypes: any; blocks stay
//! whole, so that a block type needs a last axis that its blocks divide. Numerics: moves bytes only; a view.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value, check_type};
use crate::error::{Error, Result};
use crate::op::{EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::types::{Shape, Type};
use crate::view::View;

/// The same elements under another shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// The shape of the result.
    pub shape: Shape,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "reshape", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Reshape { shape: reader.shape("shape")? }))
}

impl Op for Reshape {
    fn name(&self) -> &str {
        "reshape"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().dims("shape", self.shape.dims())
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        if let Some(dim) = self.shape.dims().iter().find(|d| d.as_const().is_some_and(|v| v < 0)) {
            crate::bail!(InvalidArgument, "size {dim} is negative");
        }
        let (from, to) = (x.shape.elems(), self.shape.elems());
        if from != to {
            let expected = format!("{to} elements to fill {}", self.shape);
            return Err(operand_error(0, expected, format!("{from} elements in {x}")));
        }
        let result = Type::new(x.dtype, self.shape.clone());
        check_type(&result)?;
        Ok(vec![result])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let x = cx.operands[0].clone();
        Ok(vec![Evaluated::moved(x.with_shape(cx.results[0].shape.clone())?)])
    }

    fn view(&self, operand: &View, result: &Type) -> Option<View> {
        operand.reshape(&result.shape)
    }
}

impl Builder {
    /// The elements of `x` under another shape.
    ///
    /// # Errors
    /// `InvalidArgument` where the numbers of elements differ, or blocks do not divide the last axis.
    pub fn reshape(&mut self, x: Value, shape: impl Into<Shape>) -> Result<Value> {
        self.emit_one(Reshape { shape: shape.into() }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::ops::testing::{eval_one, infer_one, ints, refusal, round_trip, try_eval_as};
    use crate::quant::BlockType;
    use crate::tensor::Tensor;

    fn to(shape: impl Into<Shape>) -> Reshape {
        Reshape { shape: shape.into() }
    }

    #[test]
    fn symbolic_sizes_are_compared_as_expressions() {
        let n = crate::Dim::symbol("N");
        assert_eq!(infer_one(&to([n.clone(), 12.into(), 32.into()]), &["f32[N, 384]"]), "f32[N, 12, 32]");
        assert_eq!(infer_one(&to([n.clone() * 2.into(), 3.into()]), &["i8[N, 6]"]), "i8[2 * N, 3]");
        assert_eq!(infer_one(&to(Shape::scalar()), &["bool[1, 1]"]), "bool[]");
        let message = refusal(&to([n, 5.into()]), &["f32[N, 4]"]);
        assert!(message.contains("operand 0") && message.contains("4 * N elements"), "{message}");
        assert!(refusal(&to([-2, -2]), &["f32[4]"]).contains("size -2 is negative"));
        assert!(refusal(&to(["M"]), &["f32[N]"]).contains("operand 0"));
    }

    #[test]
    fn blocks_stay_whole() {
        assert_eq!(infer_one(&to([4, 64]), &["q8_0[2, 128]"]), "q8_0[4, 64]");
        assert!(refusal(&to([16, 16]), &["q8_0[8, 32]"]).contains("multiple of 32"));
        let bytes: Vec<u8> = (0..136u8).collect();
        let x = Tensor::from_bytes(crate::TensorType::new(DType::Block(BlockType::Q8_0), [2, 64]), bytes)
            .unwrap();
        let y = eval_one(to([4, 32]), std::slice::from_ref(&x));
        assert_eq!((y.shape(), y.bytes()), (&[4usize, 32][..], x.bytes()));
    }

    #[test]
    fn elements_keep_their_order() {
        let x = ints(DType::I32, &[2, 3], &[1, 2, 3, 4, 5, 6]);
        let y = try_eval_as(to(["N", "M"].map(crate::Dim::from)), &[("i32[N, M]", x.clone())]).unwrap();
        assert_eq!(y[0].tensor, x);
        let y = eval_one(to([3, 2]), &[x]);
        assert_eq!((y.shape(), y.to_i64().unwrap()), (&[3usize, 2][..], vec![1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn the_text_form_keeps_expressions() {
        let n = crate::Dim::symbol("N");
        let shape = [n.floor_div(&2.into()), n.clone(), 1.into()];
        let from = "f32[N / 2 * N]";
        assert_eq!(round_trip(to(shape), &[from]), "reshape %x0 {shape = [((N) / (2)), N, 1]}");
        assert_eq!(round_trip(to(Shape::scalar()), &["f32[1]"]), "reshape %x0 {shape = []}");
    }
}
