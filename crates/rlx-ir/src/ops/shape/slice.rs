//! `slice`: a range of one axis, maybe with a step.
//!
//! Shapes: `[.., D, ..] -> [.., len, ..]`: the elements `start, start + step, ...` of `axis`; `start` and `len` may depend on
//! symbols. Dtypes: any; a block type takes whole blocks with step 1 of its last axis. Numerics: moves bytes only; a view.
//! A range beyond the axis is an error: at once where sizes are constants, else at the run.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{Units, resolve_axis, split_at, take_units};
use crate::types::Type;
use crate::view::View;

/// A range of one axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The axis; a negative one counts from the back.
    pub axis: i64,
    /// The first element.
    pub start: Dim,
    /// The number of elements.
    pub len: Dim,
    /// The distance of the elements, at least 1.
    pub step: usize,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "slice", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Slice {
        axis: reader.int("axis")?,
        start: reader.dim("start")?,
        len: reader.dim("len")?,
        step: reader.opt_usize("step")?.unwrap_or(1),
    }))
}

impl Slice {
    /// The end of the range, exclusive: one more than its last element; `start` where `len` is 0.
    fn end(&self) -> Dim {
        if self.len == Dim::constant(0) {
            return self.start.clone();
        }
        self.start.clone() + (self.len.clone() - 1.into()) * self.step.into() + 1.into()
    }

    fn takes_whole_blocks(&self, block: usize) -> bool {
        let whole = |d: &Dim| d.as_usize().is_some_and(|v| v.is_multiple_of(block));
        self.step == 1 && whole(&self.start) && whole(&self.len)
    }
}

impl Op for Slice {
    fn name(&self) -> &str {
        "slice"
    }

    fn attrs(&self) -> Attrs {
        let attrs = Attrs::new()
            .int("axis", self.axis)
            .with("start", crate::attrs::AttrValue::from_dim(self.start.clone()))
            .with("len", crate::attrs::AttrValue::from_dim(self.len.clone()));
        let step = i64::try_from(self.step).unwrap_or(i64::MAX);
        if step == 1 { attrs } else { attrs.int("step", step) }
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        let axis = resolve_axis(self.axis, x.rank())?;
        if self.step == 0 {
            crate::bail!(InvalidArgument, "step must be at least 1");
        }
        let negative = |d: &Dim| d.as_const().is_some_and(|v| v < 0);
        if negative(&self.start) || negative(&self.len) {
            crate::bail!(InvalidArgument, "start {} and len {} must not be negative", self.start, self.len);
        }
        let end = self.end();
        if negative(&(x.shape[axis].clone() - end.clone())) {
            return Err(operand_error(0, format!("at least {end} elements on axis {axis}"), x));
        }
        let block = x.dtype.block_elems();
        if block > 1 && axis + 1 == x.rank() && !self.takes_whole_blocks(block) {
            let expected = format!("start and len to be multiples of {block}, and step 1");
            return Err(operand_error(0, expected, x));
        }
        let mut dims = x.shape.dims().to_vec();
        dims[axis] = self.len.clone();
        Ok(vec![Type::new(x.dtype, dims)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let x = cx.operands[0];
        let axis = resolve_axis(self.axis, x.shape().len())?;
        let (start, len) = (cx.bindings.size(&self.start)?, cx.bindings.size(&self.len)?);
        let size = x.shape()[axis];
        let end = match len {
            0 => Some(start),
            _ => (len - 1).checked_mul(self.step).and_then(|v| v.checked_add(start)?.checked_add(1)),
        };
        if end.is_none_or(|end| end > size) {
            let step = self.step;
            crate::bail!(
                InvalidArgument,
                "{len} elements from {start} by {step} are beyond the {size} of axis {axis}"
            );
        }
        let units = Units::of(x.ty());
        let per_unit = size.checked_div(units.shape[axis]).unwrap_or(1);
        let (start, len) = (start / per_unit, len / per_unit);
        let (outer, size, inner) = split_at(&units.shape, axis);
        let rows = (0..outer).flat_map(|o| (0..len).map(move |i| (o, i)));
        let positions = rows.flat_map(|(o, i)| {
            let row = (o * size + start + i * self.step) * inner;
            row..row + inner
        });
        Ok(vec![Evaluated::moved(take_units(x, &cx.results[0], positions)?)])
    }

    fn cost(&self, _operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(Dim::constant(0), results, results)
    }

    fn conditions(&self, operands: &[Type]) -> Vec<(Dim, Dim)> {
        let Some(x) = operands.first() else { return Vec::new() };
        let Ok(axis) = resolve_axis(self.axis, x.rank()) else { return Vec::new() };
        let zero = Dim::constant(0);
        let all = [
            (self.end(), x.shape[axis].clone()),
            (zero.clone(), self.start.clone()),
            (zero, self.len.clone()),
        ];
        let open = |(low, high): &(Dim, Dim)| (high.clone() - low.clone()).as_const().is_none_or(|d| d < 0);
        all.into_iter().filter(open).collect()
    }

    fn view(&self, operand: &View, _result: &Type) -> Option<View> {
        let axis = resolve_axis(self.axis, operand.shape.len()).ok()?;
        Some(operand.slice(axis, &self.start, &self.len, &self.step.into()))
    }
}

impl Builder {
    /// `len` elements of `axis` from `start` on.
    ///
    /// # Errors
    /// `InvalidArgument` where the range is beyond the axis, or cuts blocks.
    pub fn slice(
        &mut self,
        x: Value,
        axis: i64,
        start: impl Into<Dim>,
        len: impl Into<Dim>,
    ) -> Result<Value> {
        self.slice_step(x, axis, start, len, 1)
    }

    /// `len` elements of `axis` from `start` on, `step` apart.
    ///
    /// # Errors
    /// `InvalidArgument` where the range is beyond the axis, or cuts blocks, or `step` is 0.
    pub fn slice_step(
        &mut self,
        x: Value,
        axis: i64,
        start: impl Into<Dim>,
        len: impl Into<Dim>,
        step: usize,
    ) -> Result<Value> {
        self.emit_one(Slice { axis, start: start.into(), len: len.into(), step }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attr_refusal, eval_one, infer_one, ints, refusal, round_trip, try_eval_as};
    use crate::quant::BlockType;
    use crate::{DType, Tensor, TensorType};

    fn range(axis: i64, start: impl Into<Dim>, len: impl Into<Dim>, step: usize) -> Slice {
        Slice { axis, start: start.into(), len: len.into(), step }
    }

    #[test]
    fn the_axis_gets_the_length() {
        assert_eq!(infer_one(&range(1, 384, 384, 1), &["f32[N, 1152]"]), "f32[N, 384]");
        assert_eq!(infer_one(&range(-1, 1, 2, 2), &["f32[N, 4]"]), "f32[N, 2]");
        let half = Dim::symbol("N").floor_div(&2.into());
        assert_eq!(infer_one(&range(0, half.clone(), half, 1), &["f32[N]"]), "f32[((N) / (2))]");
        assert_eq!(infer_one(&range(0, 1, Dim::symbol("N"), 1), &["f32[N + 1]"]), "f32[N]");
        assert_eq!(infer_one(&range(0, 4, 0, 1), &["f32[4]"]), "f32[0]");
    }

    #[test]
    fn ranges_beyond_the_axis_are_refused() {
        assert!(refusal(&range(1, 2, 3, 1), &["f32[N, 4]"]).contains("at least 5 elements on axis 1"));
        assert!(refusal(&range(1, 0, 3, 2), &["f32[N, 4]"]).contains("at least 5 elements"));
        assert!(refusal(&range(0, 2, Dim::symbol("N"), 1), &["f32[N + 1]"]).contains("at least N + 2"));
        assert!(refusal(&range(0, 5, 0, 1), &["f32[4]"]).contains("at least 5"));
        assert!(refusal(&range(0, -1, 1, 1), &["f32[4]"]).contains("must not be negative"));
        assert!(refusal(&range(0, 0, 1, 0), &["f32[4]"]).contains("step must be at least 1"));
        assert!(refusal(&range(2, 0, 1, 1), &["f32[N, 4]"]).contains("axis 2 is out of range"));
        assert!(refusal(&range(-3, 0, 1, 1), &["f32[N, 4]"]).contains("axis -3 is out of range"));
        assert!(attr_refusal("slice", "axis = 0, start = 0, len = 1, step = -1").contains("step"));
        let x = ints(DType::I32, &[3], &[1, 2, 3]);
        let e = try_eval_as(range(0, 2, 2, 1), &[("i32[N]", x)]).unwrap_err();
        assert!(e.message().contains("2 elements from 2 by 1 are beyond the 3 of axis 0"), "{e}");
    }

    #[test]
    fn a_middle_axis_is_cut_with_a_step() {
        let x = ints(DType::I32, &[2, 4, 2], &(0..16).collect::<Vec<i64>>());
        let y = eval_one(range(1, 1, 2, 2), std::slice::from_ref(&x));
        assert_eq!((y.shape(), y.to_i64().unwrap()), (&[2usize, 2, 2][..], vec![2, 3, 6, 7, 10, 11, 14, 15]));
        assert_eq!(eval_one(range(0, 2, 0, 1), &[x]).shape(), [0, 4, 2]);
    }

    #[test]
    fn blocks_are_cut_between_blocks_only() {
        let bytes: Vec<u8> = (0..6u8).flat_map(|b| [b; 18]).collect();
        let ty = TensorType::new(DType::Block(BlockType::Q4_0), [2, 96]);
        let x = Tensor::from_bytes(ty, bytes).unwrap();
        let firsts = |t: Tensor| t.bytes().chunks(18).map(|b| b[0]).collect::<Vec<u8>>();
        assert_eq!(firsts(eval_one(range(1, 32, 64, 1), std::slice::from_ref(&x))), [1, 2, 4, 5]);
        assert_eq!(firsts(eval_one(range(0, 1, 1, 1), &[x])), [3, 4, 5]);
        assert!(refusal(&range(1, 16, 32, 1), &["q4_0[2, 96]"]).contains("multiples of 32"));
        assert!(refusal(&range(1, 0, 32, 2), &["q4_0[2, 96]"]).contains("step 1"));
    }

    #[test]
    fn the_text_form_round_trips() {
        assert_eq!(
            round_trip(range(0, "N", 2, 1), &["f32[N + 2]"]),
            "slice %x0 {axis = 0, start = N, len = 2}"
        );
        let text = round_trip(range(-1, Dim::symbol("N") * 2.into(), "M", 3), &["f32[R]"]);
        assert_eq!(text, "slice %x0 {axis = -1, start = 2 * N, len = M, step = 3}");
    }
}
