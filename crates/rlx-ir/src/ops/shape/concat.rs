//! `concat`: operands one after the other along an axis.
//!
//! Shapes: `[.., D0, ..], [.., D1, ..], ... -> [.., D0 + D1 + ..., ..]`; all other sizes are equal. Dtypes: any, the same in all
//! operands; a block type on another axis than its last. Numerics: moves bytes only.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::error::Result;
use crate::op::{EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{Units, resolve_axis, split_at};
use crate::tensor::Tensor;
use crate::types::Type;

/// Operands one after the other along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Concat {
    /// The axis; a negative one counts from the back.
    pub axis: i64,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "concat", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Concat { axis: reader.int("axis")? }))
}

impl Op for Concat {
    fn name(&self) -> &str {
        "concat"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().int("axis", self.axis)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=usize::MAX)?;
        let first = &operands[0];
        let axis = resolve_axis(self.axis, first.rank())?;
        if first.dtype.is_block() && axis + 1 == first.rank() {
            return Err(operand_error(0, "a dtype without blocks, as the axis is the last", first));
        }
        let mut sum = Dim::constant(0);
        for (i, ty) in operands.iter().enumerate() {
            let rest = |t: &Type| {
                let mut dims = t.shape.dims().to_vec();
                if let Some(dim) = dims.get_mut(axis) {
                    *dim = 0.into();
                }
                dims
            };
            if ty.dtype != first.dtype || rest(ty) != rest(first) {
                return Err(operand_error(
                    i,
                    format!("a type that differs from {first} on axis {axis} only"),
                    ty,
                ));
            }
            sum = sum + ty.shape[axis].clone();
        }
        let mut dims = first.shape.dims().to_vec();
        dims[axis] = sum;
        Ok(vec![Type::new(first.dtype, dims)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        let axis = resolve_axis(self.axis, ty.shape.len())?;
        let outer = split_at(&ty.shape, axis).0;
        let mut bytes = Vec::with_capacity(ty.bytes()?);
        for o in 0..outer {
            for x in cx.operands {
                let units = Units::of(x.ty());
                let (_, size, inner) = split_at(&units.shape, axis);
                let run = size * inner * units.bytes;
                bytes.extend_from_slice(&x.bytes()[o * run..][..run]);
            }
        }
        Ok(vec![Evaluated::moved(Tensor::from_bytes(ty.clone(), bytes)?)])
    }
}

impl Builder {
    /// `operands` one after the other along `axis`.
    ///
    /// # Errors
    /// `InvalidArgument` where there are none, or they differ on other axes or in dtype.
    pub fn concat(&mut self, operands: &[Value], axis: i64) -> Result<Value> {
        self.emit_one(Concat { axis }, operands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{eval_one, infer, infer_one, ints, refusal, round_trip};
    use crate::quant::BlockType;
    use crate::{DType, TensorType};

    #[test]
    fn sizes_add_up() {
        let types = ["f32[N, 2]", "f32[M, 2]", "f32[3, 2]"];
        assert_eq!(infer_one(&Concat { axis: 0 }, &types), "f32[M + N + 3, 2]");
        assert_eq!(infer_one(&Concat { axis: -1 }, &["i8[N, 2]", "i8[N, 3]"]), "i8[N, 5]");
        assert_eq!(infer_one(&Concat { axis: 0 }, &["q8_0[1, 32]", "q8_0[2, 32]"]), "q8_0[3, 32]");
    }

    #[test]
    fn the_operand_that_differs_is_named() {
        let at = |types: &[&str]| refusal(&Concat { axis: 0 }, types);
        assert!(at(&["f32[N, 2]", "f32[N, 2]", "f32[N, 3]"]).starts_with("operand 2: expected"));
        assert!(at(&["f32[N, 2]", "f16[N, 2]"]).starts_with("operand 1: expected"));
        assert!(at(&["f32[N, 2]", "f32[N]"]).starts_with("operand 1: expected"));
        assert!(at(&["f32[]"]).contains("axis 0 is out of range for rank 0"));
        assert!(at(&["q8_0[32]", "q8_0[32]"]).contains("without blocks"));
        assert!(infer(&Concat { axis: 0 }, &[]).unwrap_err().message().contains("at least 1 operands"));
    }

    #[test]
    fn rows_interleave_on_the_last_axis_and_follow_on_the_first() {
        let a = ints(DType::I64, &[2, 1], &[1, 2]);
        let b = ints(DType::I64, &[2, 2], &[3, 4, 5, i64::MIN]);
        let y = eval_one(Concat { axis: 1 }, &[a.clone(), b]);
        assert_eq!((y.shape(), y.to_i64().unwrap()), (&[2usize, 3][..], vec![1, 3, 4, 2, 5, i64::MIN]));
        let empty = ints(DType::I64, &[0, 1], &[]);
        let y = eval_one(Concat { axis: 0 }, &[a.clone(), empty, a]);
        assert_eq!((y.shape(), y.to_i64().unwrap()), (&[4usize, 1][..], vec![1, 2, 1, 2]));
    }

    #[test]
    fn blocks_follow_each_other() {
        let ty = TensorType::new(DType::Block(BlockType::Q4_0), [2, 1, 32]);
        let of = |n: u8| {
            let bytes = [[n; 18], [n + 1; 18]].concat();
            Tensor::from_bytes(ty.clone(), bytes).unwrap()
        };
        let y = eval_one(Concat { axis: 1 }, &[of(1), of(5)]);
        let firsts: Vec<u8> = y.bytes().chunks(18).map(|b| b[0]).collect();
        assert_eq!(firsts, [1, 5, 2, 6]);
    }

    #[test]
    fn the_text_form_round_trips() {
        let text = round_trip(Concat { axis: -2 }, &["f32[N, 2]", "f32[M, 2]"]);
        assert_eq!(text, "concat %x0, %x1 {axis = -2}");
    }
}
