//! `scatter`: writes rows into a copy of a tensor, by index.
//!
//! Shapes: `x[a.., D, b..], indices[i..], updates[a.., i.., b..] -> [a.., D, b..]`, where `D` is the size of `axis`. Dtypes: `x`
//! and the updates have the same scalar type (for `add`, a float or an integer), which is the result's; indices are i32, i64 or
//! u32. Numerics: `set` moves bytes, and of several rows for one place the last wins; `add` sums in f64 and rounds once, and
//! integers wrap. A negative index skips its row; one that is too large is an error.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{is_index, resolve_axis, split_at};
use crate::tensor::Tensor;
use crate::types::{Shape, Type};

/// What becomes of the element that is already there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScatterMode {
    /// The update takes its place.
    Set,
    /// The update is added to it.
    Add,
}

const MODES: [(&str, ScatterMode); 2] = [("set", ScatterMode::Set), ("add", ScatterMode::Add)];

/// Writes rows by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scatter {
    /// The axis that indices count; a negative one counts from the back.
    pub axis: i64,
    /// What becomes of the element that is already there.
    pub mode: ScatterMode,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "scatter", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Scatter { axis: reader.int("axis")?, mode: reader.choice("mode", &MODES)? }))
}

impl Scatter {
    /// For each element of the updates, in order, the element of the result that it goes to; `None` where it is skipped.
    fn targets(&self, shape: &[usize], indices: &[i64]) -> Result<Vec<Option<usize>>> {
        let (outer, size, inner) = split_at(shape, resolve_axis(self.axis, shape.len())?);
        let mut targets = Vec::with_capacity(outer * indices.len() * inner);
        for o in 0..outer {
            for &index in indices {
                let row = match usize::try_from(index) {
                    Err(_) => None,
                    Ok(row) if row < size => Some((o * size + row) * inner),
                    Ok(_) => crate::bail!(InvalidArgument, "index {index} is out of range for {size} rows"),
                };
                targets.extend((0..inner).map(|i| row.map(|start| start + i)));
            }
        }
        Ok(targets)
    }
}

impl Op for Scatter {
    fn name(&self) -> &str {
        "scatter"
    }

    fn attrs(&self) -> Attrs {
        let word = MODES.iter().find(|(_, mode)| *mode == self.mode).map_or("", |(word, _)| word);
        Attrs::new().int("axis", self.axis).word("mode", word)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 3..=3)?;
        let (x, indices, updates) = (&operands[0], &operands[1], &operands[2]);
        let axis = resolve_axis(self.axis, x.rank())?;
        match self.mode {
            ScatterMode::Set if x.dtype.is_block() => {
                return Err(operand_error(0, "a dtype without blocks", x));
            }
            ScatterMode::Add if !(x.dtype.is_float() || x.dtype.is_int()) => {
                return Err(operand_error(0, "a float or an integer", x));
            }
            _ => {}
        }
        if !is_index(indices.dtype) {
            return Err(operand_error(1, "i32, i64 or u32", indices));
        }
        let (outer, inner) = (&x.shape.dims()[..axis], &x.shape.dims()[axis + 1..]);
        let rows: Shape = outer.iter().chain(indices.shape.dims()).chain(inner).collect();
        let rows = Type::new(x.dtype, rows);
        if *updates != rows {
            return Err(operand_error(2, rows, updates));
        }
        Ok(vec![x.clone()])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (x, updates, ty) = (cx.operands[0], cx.operands[2], &cx.results[0]);
        let targets = self.targets(x.shape(), &cx.operands[1].to_i64()?)?;
        let moves = targets.iter().enumerate().filter_map(|(from, to)| Some((from, (*to)?)));
        if self.mode == ScatterMode::Set {
            let (mut bytes, size) = (x.bytes().to_vec(), ty.dtype.block_bytes());
            for (from, to) in moves {
                bytes[to * size..][..size].copy_from_slice(&updates.bytes()[from * size..][..size]);
            }
            return Ok(vec![Evaluated::moved(Tensor::from_bytes(ty.clone(), bytes)?)]);
        }
        if ty.dtype.is_int() {
            let (mut values, updates) = (x.to_i64()?, updates.to_i64()?);
            for (from, to) in moves {
                values[to] = values[to].wrapping_add(updates[from]);
            }
            return Ok(vec![Evaluated::moved(Tensor::from_i64(ty.clone(), &values)?)]);
        }
        let (mut values, updates) = (x.to_f64()?, updates.to_f64()?);
        let mut abs: Vec<f64> = values.iter().map(|v| v.abs()).collect();
        let mut terms = vec![1; values.len()];
        for (from, to) in moves {
            values[to] += updates[from];
            abs[to] += updates[from].abs();
            terms[to] += 1;
        }
        let most = terms.into_iter().max().unwrap_or(1);
        Ok(vec![Evaluated::computed(ty, values, abs, most)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        let flops = match self.mode {
            ScatterMode::Set => Dim::constant(0),
            ScatterMode::Add => operands[2].shape.elems(),
        };
        Cost::of_types(flops, operands, results)
    }
}

impl Builder {
    /// `x` with the rows `updates` written (or added) at `indices` along `axis`.
    ///
    /// # Errors
    /// `InvalidArgument` where shapes or dtypes do not fit.
    pub fn scatter(
        &mut self,
        x: Value,
        indices: Value,
        updates: Value,
        axis: i64,
        mode: ScatterMode,
    ) -> Result<Value> {
        self.emit_one(Scatter { axis, mode }, &[x, indices, updates])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::ops::testing::{
        attr_refusal, eval_one, eval_refusal, floats, infer_one, ints, refusal, round_trip, try_eval,
    };

    fn set(axis: i64) -> Scatter {
        Scatter { axis, mode: ScatterMode::Set }
    }

    fn add(axis: i64) -> Scatter {
        Scatter { axis, mode: ScatterMode::Add }
    }

    #[test]
    fn updates_have_the_indices_in_place_of_the_axis() {
        assert_eq!(infer_one(&add(0), &["f32[M, 4]", "i32[N]", "f32[N, 4]"]), "f32[M, 4]");
        assert_eq!(infer_one(&set(-2), &["bool[2, M, 4]", "i64[N, R]", "bool[2, N, R, 4]"]), "bool[2, M, 4]");
        assert!(
            refusal(&add(0), &["f32[M, 4]", "i32[N]", "f32[M, 4]"]).contains("operand 2: expected f32[N, 4]")
        );
        assert!(refusal(&add(0), &["f32[M, 4]", "i32[N]", "f16[N, 4]"]).starts_with("operand 2"));
        assert!(refusal(&add(0), &["f32[M, 4]", "i8[N]", "f32[N, 4]"]).starts_with("operand 1"));
        assert!(refusal(&add(0), &["bool[M]", "i32[N]", "bool[N]"]).starts_with("operand 0"));
        assert!(refusal(&set(0), &["q8_0[M, 32]", "i32[N]", "q8_0[N, 32]"]).starts_with("operand 0"));
        assert!(refusal(&set(1), &["f32[M]", "i32[N]", "f32[N]"]).contains("axis 1 is out of range"));
        assert!(attr_refusal("scatter", "axis = 0, mode = max").contains("one of set, add"));
    }

    #[test]
    fn set_lets_the_last_win_and_skips_negative_indices() {
        let x = ints(DType::I64, &[3, 2], &[1, 2, 3, 4, 5, 6]);
        let indices = ints(DType::I32, &[4], &[2, -1, 0, 2]);
        let updates = ints(DType::I64, &[4, 2], &[10, 11, 20, 21, 30, 31, i64::MAX, 41]);
        let y = eval_one(set(0), &[x, indices, updates]);
        assert_eq!(y.to_i64().unwrap(), [30, 31, 3, 4, i64::MAX, 41]);
    }

    #[test]
    fn add_accumulates_duplicates_before_it_rounds() {
        let x = floats(DType::F16, &[1, 2], &[2048.0, 1.0]);
        let indices = ints(DType::U32, &[3], &[0, 0, 1]);
        let updates = floats(DType::F16, &[1, 3], &[1.0, -3.0, 0.5]);
        let out = &try_eval(add(1), &[x, indices, updates]).unwrap()[0];
        // In f16 2048 + 1 would be 2048, and 2045 then; in f64 it is 2046.
        assert_eq!(out.tensor.to_f64().unwrap(), [2046.0, 1.5]);
        assert_eq!((out.abs_terms.clone(), out.terms), (Some(vec![2052.0, 1.5]), 3));
        let x = ints(DType::U8, &[1], &[250]);
        let y = eval_one(add(0), &[x, ints(DType::I32, &[1], &[0]), ints(DType::U8, &[1], &[10])]);
        assert_eq!(y.to_i64().unwrap(), [4]);
    }

    #[test]
    fn an_index_that_is_too_large_is_an_error() {
        for op in [set(0), add(0)] {
            let x = floats(DType::F32, &[2], &[0.0, 0.0]);
            let operands = [x, ints(DType::I32, &[1], &[2]), floats(DType::F32, &[1], &[1.0])];
            assert!(eval_refusal(op, &operands).contains("index 2 is out of range for 2 rows"));
        }
    }

    #[test]
    fn the_text_form_round_trips() {
        let types = ["f32[M, 4]", "i32[N]", "f32[N, 4]"];
        assert_eq!(round_trip(set(0), &types), "scatter %x0, %x1, %x2 {axis = 0, mode = set}");
        assert_eq!(round_trip(add(-2), &types), "scatter %x0, %x1, %x2 {axis = -2, mode = add}");
    }
}
