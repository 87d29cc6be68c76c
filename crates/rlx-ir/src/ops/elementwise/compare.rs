//! `eq`, `ne`, `lt`, `le`, `gt`, `ge`: comparisons of two elements.
//!
//! Shapes: operands broadcast, aligned at the last axis. Dtypes: both operands have the same float or integer type (`eq` and
//! `ne` also `bool`); the result is `bool`. Numerics: exact; a comparison with NaN is false, but for `ne`.

use std::sync::Arc;

use crate::attrs::AttrReader;
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{broadcast_positions, broadcast_shapes};
use crate::tensor::Tensor;
use crate::types::Type;

macro_rules! comparisons {
    ($($variant:ident $name:ident $doc:literal $f:expr;)*) => {
        /// The comparisons.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum CompareKind {
            $(#[doc = $doc] $variant,)*
        }

        impl CompareKind {
            /// Every comparison.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name),)* }
            }

            /// The comparison of two values of one type.
            pub fn apply<T: PartialOrd>(self, a: &T, b: &T) -> bool {
                let f: fn(&T, &T) -> bool = match self { $(Self::$variant => $f,)* };
                f(a, b)
            }
        }

        /// The rows of the op table.
        pub(crate) const DEFS: &[OpDef] =
            &[$(OpDef { name: stringify!($name), tier: Tier::Core, parse }),*];

        impl Builder {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                /// `InvalidArgument` where dtypes differ or shapes do not broadcast.
                pub fn $name(&mut self, a: Value, b: Value) -> Result<Value> {
                    self.emit_one(Compare { kind: CompareKind::$variant }, &[a, b])
                }
            )*
        }
    };
}

comparisons! {
    Eq eq "Whether `a = b`" T::eq;
    Ne ne "Whether `a != b`; true if either is NaN" T::ne;
    Lt lt "Whether `a < b`" T::lt;
    Le le "Whether `a <= b`" T::le;
    Gt gt "Whether `a > b`" T::gt;
    Ge ge "Whether `a >= b`" T::ge;
}

/// A comparison of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compare {
    /// The comparison.
    pub kind: CompareKind,
}

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    match CompareKind::ALL.iter().copied().find(|k| k.name() == reader.op()) {
        Some(kind) => Ok(Arc::new(Compare { kind })),
        None => crate::bail!(InvalidArgument, "{} is no comparison", reader.op()),
    }
}

impl Op for Compare {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 2..=2)?;
        let dtype = operands[0].dtype;
        let equality = matches!(self.kind, CompareKind::Eq | CompareKind::Ne);
        if !(dtype.is_float() || dtype.is_int() || equality && dtype == DType::Bool) {
            let expected = if equality { "a float, an integer or bool" } else { "a float or an integer" };
            return Err(operand_error(0, expected, &operands[0]));
        }
        if operands[1].dtype != dtype {
            return Err(operand_error(1, dtype, &operands[1]));
        }
        let shape = broadcast_shapes(&operands[0].shape, &operands[1].shape)?;
        Ok(vec![Type::new(DType::Bool, shape)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (a, b, ty) = (cx.operands[0], cx.operands[1], &cx.results[0]);
        let (a_at, b_at) =
            (broadcast_positions(a.shape(), &ty.shape), broadcast_positions(b.shape(), &ty.shape));
        let pairs = a_at.into_iter().zip(b_at);
        let bits: Vec<u8> = if a.dtype().is_float() {
            let (a, b) = (a.to_f64()?, b.to_f64()?);
            pairs.map(|(i, j)| self.kind.apply(&a[i], &b[j]).into()).collect()
        } else {
            let (a, b) = (a.to_i64()?, b.to_i64()?);
            pairs.map(|(i, j)| self.kind.apply(&a[i], &b[j]).into()).collect()
        };
        Ok(vec![Evaluated::moved(Tensor::from_bytes(ty.clone(), bits)?)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems(), operands, results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{eval_one, floats, infer_one, ints, refusal, round_trip};

    fn by(kind: CompareKind) -> Compare {
        Compare { kind }
    }

    #[test]
    fn operands_broadcast_to_bool() {
        assert_eq!(infer_one(&by(CompareKind::Lt), &["f16[N, 1]", "f16[4]"]), "bool[N, 4]");
        assert_eq!(infer_one(&by(CompareKind::Eq), &["bool[N]", "bool[]"]), "bool[N]");
    }

    #[test]
    fn dtypes_that_do_not_fit_are_refused() {
        assert!(refusal(&by(CompareKind::Lt), &["bool[2]", "bool[2]"]).starts_with("operand 0"));
        assert!(refusal(&by(CompareKind::Eq), &["q8_0[32]", "q8_0[32]"]).starts_with("operand 0"));
        assert!(refusal(&by(CompareKind::Eq), &["i32[2]", "i64[2]"]).starts_with("operand 1: expected i32"));
        assert!(refusal(&by(CompareKind::Eq), &["i32[2]", "i32[3]"]).contains("do not broadcast"));
        assert!(refusal(&by(CompareKind::Eq), &["i32[2]"]).contains("expected 2 operands"));
    }

    #[test]
    fn every_comparison_by_its_truth_table() {
        // Pairs: less, equal, greater, NaN on the left, NaN on both sides, two zeros.
        let nan = f64::NAN;
        let a = floats(DType::F32, &[6], &[1.0, 2.0, 3.0, nan, nan, -0.0]);
        let b = floats(DType::F32, &[6], &[2.0, 2.0, 2.0, 2.0, nan, 0.0]);
        let expected: [(CompareKind, [i64; 6]); 6] = [
            (CompareKind::Eq, [0, 1, 0, 0, 0, 1]),
            (CompareKind::Ne, [1, 0, 1, 1, 1, 0]),
            (CompareKind::Lt, [1, 0, 0, 0, 0, 0]),
            (CompareKind::Le, [1, 1, 0, 0, 0, 1]),
            (CompareKind::Gt, [0, 0, 1, 0, 0, 0]),
            (CompareKind::Ge, [0, 1, 1, 0, 0, 1]),
        ];
        assert_eq!(expected.len(), CompareKind::ALL.len());
        for (kind, bits) in expected {
            assert_eq!(eval_one(by(kind), &[a.clone(), b.clone()]).to_i64().unwrap(), bits, "{kind:?}");
        }
    }

    #[test]
    fn large_integers_are_told_apart() {
        let a = ints(DType::I64, &[2, 1], &[i64::MAX, i64::MAX - 1]);
        let b = ints(DType::I64, &[2], &[i64::MAX, i64::MAX - 1]);
        assert_eq!(eval_one(by(CompareKind::Eq), &[a, b]).to_i64().unwrap(), [1, 0, 0, 1]);
    }

    #[test]
    fn the_text_form_round_trips() {
        for kind in CompareKind::ALL {
            let text = round_trip(by(*kind), &["f32[N, 2]", "f32[]"]);
            assert_eq!(text, format!("{} %x0, %x1", kind.name()));
        }
    }
}
