//! `gather`: rows of a table by index.
//!
//! Shapes: `table[a.., D, b..], indices[i..] -> [a.., i.., b..]`, where `D` is the size of `axis`. Dtypes: the table has any
//! scalar type, which is the result's; or, on axis 0 of rank 2, a block type, whose decoded rows are f32. Indices are i32, i64
//! or u32. Numerics: moves bytes, or decodes exactly. An index that is negative or too large is an error.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{is_index, resolve_axis, split_at};
use crate::tensor::Tensor;
use crate::types::{TensorType, Type};

/// Rows of a table by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gather {
    /// The axis of the table that indices count; a negative one counts from the back.
    pub axis: i64,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "gather", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Gather { axis: reader.int("axis")? }))
}

impl Op for Gather {
    fn name(&self) -> &str {
        "gather"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().int("axis", self.axis)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 2..=2)?;
        let (table, indices) = (&operands[0], &operands[1]);
        let axis = resolve_axis(self.axis, table.rank())?;
        if table.dtype.is_block() && (axis, table.rank()) != (0, 2) {
            return Err(operand_error(0, "a table of rank 2 and axis 0, as it has blocks", table));
        }
        if !is_index(indices.dtype) {
            return Err(operand_error(1, "i32, i64 or u32", indices));
        }
        let (outer, inner) = (&table.shape.dims()[..axis], &table.shape.dims()[axis + 1..]);
        let dims: Vec<Dim> = outer.iter().chain(indices.shape.dims()).chain(inner).cloned().collect();
        let dtype = if table.dtype.is_block() { DType::F32 } else { table.dtype };
        Ok(vec![Type::new(dtype, dims)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (table, ty) = (cx.operands[0], &cx.results[0]);
        let axis = resolve_axis(self.axis, table.shape().len())?;
        let (outer, size, inner) = split_at(table.shape(), axis);
        let Some(row_bytes) = table.dtype().row_bytes(inner) else {
            crate::bail!(InvalidArgument, "a row of {} is no whole number of blocks", table.ty());
        };
        let indices = cx.operands[1].to_i64()?;
        let mut bytes = Vec::new();
        for o in 0..outer {
            for &index in &indices {
                let row = match usize::try_from(index) {
                    Ok(row) if row < size => row,
                    _ => crate::bail!(InvalidArgument, "index {index} is out of range for {size} rows"),
                };
                bytes.extend_from_slice(&table.bytes()[(o * size + row) * row_bytes..][..row_bytes]);
            }
        }
        let rows = TensorType::new(table.dtype(), ty.shape.clone());
        let rows = Tensor::from_bytes(rows, bytes)?;
        let result =
            if table.dtype().is_block() { Tensor::from_f64(ty.clone(), &rows.to_f64()?)? } else { rows };
        Ok(vec![Evaluated::moved(result)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        // Only the rows that are asked for are read, as they are stored.
        let rows = Type::new(operands[0].dtype, results[0].shape.clone());
        Cost::of_types(Dim::constant(0), &[rows, operands[1].clone()], results)
    }
}

impl Builder {
    /// The rows `indices` of `table` along `axis`.
    ///
    /// # Errors
    /// `InvalidArgument` where the axis is out of range, indices are no integers, or blocks are not gathered by rows.
    pub fn gather(&mut self, table: Value, indices: Value, axis: i64) -> Result<Value> {
        self.emit_one(Gather { axis }, &[table, indices])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{eval_one, eval_refusal, infer_one, ints, refusal, round_trip, ty};
    use crate::quant::BlockType;

    #[test]
    fn the_axis_becomes_the_shape_of_the_indices() {
        assert_eq!(infer_one(&Gather { axis: 0 }, &["f16[100, 8]", "i32[N]"]), "f16[N, 8]");
        assert_eq!(infer_one(&Gather { axis: -2 }, &["i8[2, M, 3]", "u32[N, R]"]), "i8[2, N, R, 3]");
        assert_eq!(infer_one(&Gather { axis: 0 }, &["f32[4]", "i64[]"]), "f32[]");
        assert_eq!(infer_one(&Gather { axis: 0 }, &["q4_k[100, 256]", "i32[N]"]), "f32[N, 256]");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(refusal(&Gather { axis: 0 }, &["f32[4]", "f32[N]"]).starts_with("operand 1: expected i32"));
        assert!(refusal(&Gather { axis: 0 }, &["f32[4]", "bool[N]"]).starts_with("operand 1"));
        assert!(refusal(&Gather { axis: 1 }, &["f32[4]", "i32[N]"]).contains("axis 1 is out of range"));
        assert!(refusal(&Gather { axis: 1 }, &["q8_0[4, 32]", "i32[N]"]).starts_with("operand 0"));
        assert!(refusal(&Gather { axis: 0 }, &["q8_0[4, 2, 32]", "i32[N]"]).starts_with("operand 0"));
        for index in [-1, 3, i64::from(i32::MAX)] {
            let table = ints(DType::I8, &[3, 1], &[1, 2, 3]);
            let message = eval_refusal(Gather { axis: 0 }, &[table, ints(DType::I32, &[2], &[0, index])]);
            assert!(message.contains(&format!("index {index} is out of range for 3 rows")), "{message}");
        }
        let table = ints(DType::I8, &[1], &[1]);
        let message = eval_refusal(Gather { axis: 0 }, &[table, ints(DType::I64, &[1], &[1 << 32])]);
        assert!(message.contains("index 4294967296"), "{message}");
    }

    #[test]
    fn rows_come_in_the_order_of_their_indices() {
        let table = ints(DType::I64, &[2, 3], &[10, 11, 12, 20, 21, i64::MAX]);
        let indices = ints(DType::U32, &[2], &[2, 0]);
        let y = eval_one(Gather { axis: 1 }, &[table.clone(), indices]);
        assert_eq!((y.shape(), y.to_i64().unwrap()), (&[2usize, 2][..], vec![12, 10, i64::MAX, 20]));
        let indices = ints(DType::I64, &[2, 1], &[1, 1]);
        let y = eval_one(Gather { axis: 0 }, &[table.clone(), indices]);
        assert_eq!(
            (y.shape(), y.to_i64().unwrap()[..3].to_vec()),
            (&[2usize, 1, 3][..], vec![20, 21, i64::MAX])
        );
        assert_eq!(eval_one(Gather { axis: 0 }, &[table, ints(DType::I32, &[0], &[])]).shape(), [0, 3]);
    }

    #[test]
    fn rows_of_blocks_are_decoded() {
        // q8_f32: scale 0.5, quants 1, 2, 3, ... in row 0; scale 2 in row 1.
        let row = |scale: f32| {
            let mut bytes = scale.to_le_bytes().to_vec();
            bytes.extend(1..=32u8);
            bytes
        };
        let ty = TensorType::new(DType::Block(BlockType::Q8_F32), [2, 32]);
        let table = Tensor::from_bytes(ty, [row(0.5), row(2.0)].concat()).unwrap();
        let y = eval_one(Gather { axis: 0 }, &[table, ints(DType::I32, &[2], &[1, 0])]).to_f64().unwrap();
        assert_eq!((y[0], y[31], y[32], y[63]), (2.0, 64.0, 0.5, 16.0));
    }

    #[test]
    fn only_the_rows_are_read() {
        let operands = [ty("q8_0[1000, 64]"), ty("i32[N]")];
        let cost = Gather { axis: 0 }.cost(&operands, &[ty("f32[N, 64]")]);
        let n = Dim::symbol("N");
        assert_eq!(cost.bytes_read, n.clone() * (68 + 4).into());
        assert_eq!(cost.bytes_written, n * 256.into());
    }

    #[test]
    fn the_text_form_round_trips() {
        assert_eq!(round_trip(Gather { axis: -1 }, &["f32[N, 2]", "i32[M]"]), "gather %x0, %x1 {axis = -1}");
    }
}
