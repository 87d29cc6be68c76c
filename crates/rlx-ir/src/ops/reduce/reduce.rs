//! `reduce_sum`, `reduce_max`, `reduce_min`, `reduce_mean`, `reduce_prod`: one value of all that lie along some axes.
//!
//! Shapes: `[d0, d1, ...]` without the axes that are reduced, or with size 1 in their place (`keep_dims`). Dtypes: float or
//! integer (`reduce_mean`: float), which is the result's. Numerics: in f64, rounded once; integers wrap. Maximum and minimum
//! propagate NaN. Nothing to reduce gives 0, 1, NaN for sum, product, mean, and the lowest (highest) value of the dtype for
//! the maximum (minimum): for floats an infinity.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{for_each_index, resolve_axis, strides};
use crate::tensor::Tensor;
use crate::types::{TensorType, Type};

macro_rules! reductions {
    ($($variant:ident $name:ident $doc:literal;)*) => {
        /// The reductions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ReduceKind {
            $(#[doc = $doc] $variant,)*
        }

        impl ReduceKind {
            /// Every reduction.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name),)* }
            }
        }

        /// The rows of the op table.
        pub(crate) const DEFS: &[OpDef] =
            &[$(OpDef { name: stringify!($name), tier: Tier::Core, parse }),*];

        impl Builder {
            $(
                #[doc = $doc]
                ///
                /// Negative axes count from the back.
                ///
                /// # Errors
                /// `InvalidArgument` where the dtype does not fit, or an axis is out of range or named twice.
                pub fn $name(&mut self, x: Value, axes: &[i64], keep_dims: KeepDims) -> Result<Value> {
                    self.emit_one(Reduce { kind: ReduceKind::$variant, axes: axes.to_vec(), keep_dims }, &[x])
                }
            )*
        }
    };
}

reductions! {
    Sum reduce_sum "The sum along `axes`";
    Max reduce_max "The largest value along `axes`; NaN if any is NaN";
    Min reduce_min "The smallest value along `axes`; NaN if any is NaN";
    Mean reduce_mean "The mean along `axes`; floats only";
    Prod reduce_prod "The product along `axes`";
}

/// What becomes of the axes that are reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeepDims {
    /// They stay, with size 1.
    Yes,
    /// They go.
    No,
}

/// One value of all that lie along some axes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reduce {
    /// The reduction.
    pub kind: ReduceKind,
    /// The axes, at least one; negative ones count from the back.
    pub axes: Vec<i64>,
    /// Whether the axes stay.
    pub keep_dims: KeepDims,
}

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let Some(kind) = ReduceKind::ALL.iter().copied().find(|k| k.name() == reader.op()) else {
        crate::bail!(InvalidArgument, "{} is no reduction", reader.op());
    };
    let axes = reader.ints("axes")?;
    let keep_dims = if reader.flag("keep_dims")? { KeepDims::Yes } else { KeepDims::No };
    Ok(Arc::new(Reduce { kind, axes, keep_dims }))
}

impl Reduce {
    /// For each axis of a tensor of `rank` whether it is reduced.
    ///
    /// # Errors
    /// `InvalidArgument` where an axis is out of range or named twice, or none is named.
    pub fn reduced(&self, rank: usize) -> Result<Vec<bool>> {
        let mut reduced = vec![false; rank];
        for &axis in &self.axes {
            let at = resolve_axis(axis, rank)?;
            if std::mem::replace(&mut reduced[at], true) {
                crate::bail!(InvalidArgument, "axis {axis} is named twice");
            }
        }
        if self.axes.is_empty() {
            crate::bail!(InvalidArgument, "axes must name at least one axis");
        }
        Ok(reduced)
    }

    fn floats(&self, values: &[f64]) -> (f64, f64) {
        let nan = values.iter().any(|v| v.is_nan());
        match self.kind {
            ReduceKind::Sum => (values.iter().sum(), values.iter().map(|v| v.abs()).sum()),
            ReduceKind::Mean => {
                let n = values.len() as f64;
                (values.iter().sum::<f64>() / n, values.iter().map(|v| v.abs()).sum::<f64>() / n)
            }
            ReduceKind::Prod => {
                let product: f64 = values.iter().product();
                (product, product.abs())
            }
            ReduceKind::Max | ReduceKind::Min if nan => (f64::NAN, 0.0),
            ReduceKind::Max => (values.iter().copied().fold(f64::NEG_INFINITY, f64::max), 0.0),
            ReduceKind::Min => (values.iter().copied().fold(f64::INFINITY, f64::min), 0.0),
        }
    }

    fn ints(&self, dtype: DType, values: &[i64]) -> Result<i64> {
        // A float that is far out of range saturates to the ends of the dtype.
        let end = |v: f64| -> Result<i64> {
            let end = Tensor::from_f64(TensorType::new(dtype, []), &[v])?.to_i64()?;
            Ok(end.first().copied().unwrap_or(0))
        };
        Ok(match self.kind {
            ReduceKind::Sum => values.iter().copied().fold(0, i64::wrapping_add),
            ReduceKind::Prod => values.iter().copied().fold(1, i64::wrapping_mul),
            ReduceKind::Max => values.iter().copied().fold(end(f64::NEG_INFINITY)?, i64::max),
            ReduceKind::Min => values.iter().copied().fold(end(f64::INFINITY)?, i64::min),
            ReduceKind::Mean => crate::bail!(Bug, "mean of integers"),
        })
    }
}

impl Op for Reduce {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn attrs(&self) -> Attrs {
        let keep = self.keep_dims == KeepDims::Yes;
        Attrs::new().ints("axes", self.axes.iter().copied()).flag("keep_dims", keep)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        let ints = self.kind != ReduceKind::Mean;
        if !(x.dtype.is_float() || ints && x.dtype.is_int()) {
            return Err(operand_error(0, if ints { "a float or an integer" } else { "a float" }, x));
        }
        let reduced = self.reduced(x.rank())?;
        let mut dims: Vec<Dim> = Vec::new();
        for (dim, reduced) in x.shape.dims().iter().zip(reduced) {
            match (reduced, self.keep_dims) {
                (false, _) => dims.push(dim.clone()),
                (true, KeepDims::Yes) => dims.push(1.into()),
                (true, KeepDims::No) => {}
            }
        }
        Ok(vec![Type::new(x.dtype, dims)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (x, ty) = (cx.operands[0], &cx.results[0]);
        let reduced = self.reduced(x.shape().len())?;
        let from = strides(x.shape());
        let axes = |which: bool| -> Vec<usize> {
            (0..reduced.len()).filter(|&axis| reduced[axis] == which).collect()
        };
        let positions = |axes: &[usize]| {
            let sizes: Vec<usize> = axes.iter().map(|&axis| x.shape()[axis]).collect();
            let mut out: Vec<usize> = Vec::new();
            for_each_index(&sizes, |index| out.push(index.iter().zip(axes).map(|(i, &a)| i * from[a]).sum()));
            out
        };
        let (kept, terms) = (positions(&axes(false)), positions(&axes(true)));
        if ty.dtype.is_int() {
            let values = x.to_i64()?;
            let one = |start: &usize| {
                let line: Vec<i64> = terms.iter().map(|t| values[start + t]).collect();
                self.ints(ty.dtype, &line)
            };
            let out = kept.iter().map(one).collect::<Result<Vec<i64>>>()?;
            return Ok(vec![Evaluated::moved(Tensor::from_i64(ty.clone(), &out)?)]);
        }
        let values = x.to_f64()?;
        let (mut out, mut abs) = (Vec::new(), Vec::new());
        for start in &kept {
            let line: Vec<f64> = terms.iter().map(|t| values[start + t]).collect();
            let (value, sum) = self.floats(&line);
            out.push(value);
            abs.push(sum);
        }
        if matches!(self.kind, ReduceKind::Max | ReduceKind::Min) {
            return Ok(vec![Evaluated::moved(Tensor::from_f64(ty.clone(), &out)?)]);
        }
        Ok(vec![Evaluated::computed(ty, out, abs, terms.len())?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(operands[0].shape.elems(), operands, results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{
        attr_refusal, eval_one, floats, infer_one, ints, refusal, round_trip, try_eval, try_eval_as,
    };

    fn by(kind: ReduceKind, axes: &[i64], keep_dims: KeepDims) -> Reduce {
        Reduce { kind, axes: axes.to_vec(), keep_dims }
    }

    #[test]
    fn axes_go_or_stay_with_size_one() {
        let shape = |axes: &[i64], keep| infer_one(&by(ReduceKind::Max, axes, keep), &["f16[N, 2, M]"]);
        assert_eq!(shape(&[1], KeepDims::No), "f16[N, M]");
        assert_eq!(shape(&[-1, 0], KeepDims::Yes), "f16[1, 2, 1]");
        assert_eq!(shape(&[0, 1, 2], KeepDims::No), "f16[]");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let at = |kind, axes: &[i64], ty| refusal(&by(kind, axes, KeepDims::No), &[ty]);
        assert!(at(ReduceKind::Sum, &[2], "f32[N, 2]").contains("axis 2 is out of range for rank 2"));
        assert!(at(ReduceKind::Sum, &[1, -1], "f32[N, 2]").contains("axis -1 is named twice"));
        assert!(at(ReduceKind::Sum, &[], "f32[N, 2]").contains("at least one axis"));
        assert!(at(ReduceKind::Sum, &[0], "f32[]").contains("out of range"));
        assert!(at(ReduceKind::Sum, &[0], "bool[N]").starts_with("operand 0"));
        assert!(at(ReduceKind::Max, &[0], "q8_0[2, 32]").starts_with("operand 0"));
        assert!(at(ReduceKind::Mean, &[0], "i32[N]").starts_with("operand 0: expected a float"));
        assert!(attr_refusal("reduce_sum", "keep_dims").contains("axes is missing"));
        assert!(attr_refusal("reduce_sum", "axes = [0.5]").contains("axes must be a list of integers"));
    }

    #[test]
    fn two_by_three_by_two_along_the_outer_axes() {
        let x = floats(DType::F32, &[2, 3, 2], &[1., -2., 3., 4., 5., 6., 7., 8., 9., 10., 11., -12.]);
        // Along axes 0 and 2: rows {1, -2, 7, 8}, {3, 4, 9, 10}, {5, 6, 11, -12}.
        let at = |kind| {
            let y = eval_one(by(kind, &[0, 2], KeepDims::No), std::slice::from_ref(&x));
            y.to_f64().unwrap()
        };
        assert_eq!(at(ReduceKind::Sum), [14.0, 26.0, 10.0]);
        assert_eq!(at(ReduceKind::Mean), [3.5, 6.5, 2.5]);
        assert_eq!(at(ReduceKind::Max), [8.0, 10.0, 11.0]);
        assert_eq!(at(ReduceKind::Min), [-2.0, 3.0, -12.0]);
        assert_eq!(at(ReduceKind::Prod), [-112.0, 1080.0, -3960.0]);
    }

    #[test]
    fn sums_cancel_in_f64_and_report_their_terms() {
        let x = floats(DType::F32, &[3], &[1e30, 1.0, -1e30]);
        let out = &try_eval(by(ReduceKind::Sum, &[0], KeepDims::Yes), &[x]).unwrap()[0];
        // 1e30 + 1 is 1e30 even in f64; what is left is 0, and the terms say how little that means.
        assert_eq!((out.tensor.to_f32().unwrap(), out.terms), (vec![0.0], 3));
        let abs = out.abs_terms.as_ref().unwrap()[0];
        assert!((abs / 2e30 - 1.0).abs() < 1e-7, "{abs}");
        let x = floats(DType::F32, &[4], &[16_777_216.0, 1.0, 1.0, 1.0]);
        assert_eq!(eval_one(by(ReduceKind::Sum, &[0], KeepDims::No), &[x]).to_f64().unwrap(), [16_777_220.0]);
        let x = floats(DType::F32, &[2], &[-3.0, 1.0]);
        let out = &try_eval(by(ReduceKind::Mean, &[0], KeepDims::No), &[x]).unwrap()[0];
        assert_eq!(out.abs_terms, Some(vec![2.0]));
    }

    #[test]
    fn extremes_propagate_nan_and_infinities() {
        let x = floats(DType::F16, &[2, 2], &[f64::NAN, 1.0, f64::NEG_INFINITY, 1.0]);
        for kind in [ReduceKind::Max, ReduceKind::Min] {
            let y = eval_one(by(kind, &[1], KeepDims::No), std::slice::from_ref(&x)).to_f64().unwrap();
            assert!(y[0].is_nan());
            assert_eq!(y[1], if kind == ReduceKind::Max { 1.0 } else { f64::NEG_INFINITY });
        }
    }

    #[test]
    fn nothing_gives_the_neutral_value() {
        let at = |kind, dtype: DType| {
            let op = by(kind, &[0], KeepDims::No);
            let x = ints(dtype, &[0, 1], &[]);
            try_eval_as(op, &[(&format!("{dtype}[N, 1]"), x)]).unwrap()[0].tensor.to_f64().unwrap()[0]
        };
        assert_eq!(at(ReduceKind::Sum, DType::F32), 0.0);
        assert_eq!(at(ReduceKind::Prod, DType::I32), 1.0);
        assert!(at(ReduceKind::Mean, DType::F32).is_nan());
        assert_eq!(at(ReduceKind::Max, DType::F32), f64::NEG_INFINITY);
        assert_eq!(at(ReduceKind::Min, DType::F16), f64::INFINITY);
        assert_eq!(at(ReduceKind::Max, DType::I8), -128.0);
        assert_eq!(at(ReduceKind::Min, DType::U8), 255.0);
    }

    #[test]
    fn integers_are_exact_and_wrap() {
        let x = ints(DType::I64, &[2], &[i64::MAX - 1, i64::MAX]);
        let at = |kind| eval_one(by(kind, &[0], KeepDims::No), std::slice::from_ref(&x)).to_i64().unwrap()[0];
        assert_eq!((at(ReduceKind::Max), at(ReduceKind::Min)), (i64::MAX, i64::MAX - 1));
        assert_eq!(at(ReduceKind::Sum), -3);
        let x = ints(DType::U8, &[2], &[200, 100]);
        assert_eq!(eval_one(by(ReduceKind::Sum, &[0], KeepDims::No), &[x]).to_i64().unwrap(), [44]);
    }

    #[test]
    fn the_text_form_round_trips() {
        for kind in ReduceKind::ALL {
            let text = round_trip(by(*kind, &[-1, 0], KeepDims::Yes), &["f32[N, 2, 3]"]);
            assert_eq!(text, format!("{} %x0 {{axes = [-1, 0], keep_dims}}", kind.name()));
            let text = round_trip(by(*kind, &[1], KeepDims::No), &["f32[N, 2]"]);
            assert_eq!(text, format!("{} %x0 {{axes = [1]}}", kind.name()));
        }
    }
}
