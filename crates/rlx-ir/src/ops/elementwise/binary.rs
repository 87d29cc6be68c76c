//! `add`, `sub`, `mul`, ...: functions of two elements.
//!
//! Shapes: operands broadcast, aligned at the last axis. Dtypes: both operands have the same float or integer type (`and`,
//! `or`, `xor` also `bool`), which is the result's. Numerics: the function in f64, rounded once; integers wrap, and
//! division or remainder by zero is an error.

use std::sync::Arc;

use crate::attrs::AttrReader;
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{broadcast_positions, broadcast_shapes};
use crate::tensor::Tensor;
use crate::types::Type;

macro_rules! binary_functions {
    ($($variant:ident $name:literal $method:ident $doc:literal;)*) => {
        /// The functions of two elements.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum BinaryKind {
            $(#[doc = $doc] $variant,)*
        }

        impl BinaryKind {
            /// Every function.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        /// The rows of the op table.
        pub(crate) const DEFS: &[OpDef] =
            &[$(OpDef { name: $name, tier: Tier::Core, parse }),*];

        impl Builder {
            $(
                #[doc = $doc]
                ///
                /// # Errors
                /// `InvalidArgument` where dtypes differ or shapes do not broadcast.
                pub fn $method(&mut self, a: Value, b: Value) -> Result<Value> {
                    self.emit_one(Binary { kind: BinaryKind::$variant }, &[a, b])
                }
            )*
        }
    };
}

binary_functions! {
    Add "add" add "`a + b`";
    Sub "sub" sub "`a - b`";
    Mul "mul" mul "`a * b`";
    Div "div" div "`a / b`; integers round toward zero";
    Rem "rem" rem "The remainder of `a / b` with the sign of `a`";
    Pow "pow" pow "`a` to the power of `b`; floats only";
    Max "max" max "The larger one; NaN if either is NaN";
    Min "min" min "The smaller one; NaN if either is NaN";
    And "and" and "Bitwise (logical for `bool`) and";
    Or "or" or "Bitwise (logical for `bool`) or";
    Xor "xor" xor "Bitwise (logical for `bool`) exclusive or";
}

impl BinaryKind {
    /// The function in f64, for float operands.
    pub fn apply(self, a: f64, b: f64) -> f64 {
        let nan = a.is_nan() || b.is_nan();
        match self {
            Self::Add => a + b,
            Self::Sub => a - b,
            Self::Mul => a * b,
            Self::Div => a / b,
            Self::Rem => libm::fmod(a, b),
            Self::Pow => libm::pow(a, b),
            Self::Max if nan => f64::NAN,
            Self::Min if nan => f64::NAN,
            Self::Max => a.max(b),
            Self::Min => a.min(b),
            Self::And | Self::Or | Self::Xor => f64::NAN,
        }
    }

    fn apply_int(self, a: i64, b: i64) -> Result<i64> {
        Ok(match self {
            Self::Add => a.wrapping_add(b),
            Self::Sub => a.wrapping_sub(b),
            Self::Mul => a.wrapping_mul(b),
            Self::Div | Self::Rem if b == 0 => {
                crate::bail!(InvalidArgument, "integer division by zero")
            }
            Self::Div => a.wrapping_div(b),
            Self::Rem => a.wrapping_rem(b),
            Self::Max => a.max(b),
            Self::Min => a.min(b),
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
            Self::Pow => crate::bail!(Bug, "pow of integers"),
        })
    }

    fn takes(self, dtype: DType) -> bool {
        match self {
            Self::Pow => dtype.is_float(),
            Self::And | Self::Or | Self::Xor => dtype.is_int() || dtype == DType::Bool,
            _ => dtype.is_float() || dtype.is_int(),
        }
    }
}

/// A function of two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binary {
    /// The function.
    pub kind: BinaryKind,
}

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let kind = BinaryKind::ALL.iter().copied().find(|k| k.name() == reader.op());
    match kind {
        Some(kind) => Ok(Arc::new(Binary { kind })),
        None => Err(operand_error(0, "an elementwise function", reader.op())),
    }
}

impl Op for Binary {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 2..=2)?;
        let dtype = operands[0].dtype;
        if !self.kind.takes(dtype) {
            return Err(operand_error(0, format!("a dtype that {} takes", self.name()), &operands[0]));
        }
        if operands[1].dtype != dtype {
            return Err(operand_error(1, dtype, &operands[1]));
        }
        let shape = broadcast_shapes(&operands[0].shape, &operands[1].shape)?;
        Ok(vec![Type::new(dtype, shape)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        let at = [0, 1].map(|i| broadcast_positions(cx.operands[i].shape(), &ty.shape));
        let pairs = at[0].iter().zip(&at[1]);
        if ty.dtype.is_float() {
            let (a, b) = (cx.operands[0].to_f64()?, cx.operands[1].to_f64()?);
            let values: Vec<f64> = pairs.clone().map(|(&i, &j)| self.kind.apply(a[i], b[j])).collect();
            // Cancellation is judged by the terms, not by the result.
            let abs = match self.kind {
                BinaryKind::Add | BinaryKind::Sub => pairs.map(|(&i, &j)| a[i].abs() + b[j].abs()).collect(),
                _ => values.iter().map(|v| v.abs()).collect(),
            };
            return Ok(vec![Evaluated::computed(ty, values, abs, 1)?]);
        }
        let (a, b) = (cx.operands[0].to_i64()?, cx.operands[1].to_i64()?);
        let values = pairs.map(|(&i, &j)| self.kind.apply_int(a[i], b[j])).collect::<Result<Vec<i64>>>()?;
        Ok(vec![Evaluated::moved(Tensor::from_i64(ty.clone(), &values)?)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems(), operands, results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{
        eval_one, eval_refusal, floats, infer_one, ints, refusal, round_trip, try_eval,
    };

    fn by(kind: BinaryKind) -> Binary {
        Binary { kind }
    }

    #[test]
    fn operands_broadcast_and_dtypes_must_agree() {
        assert_eq!(infer_one(&by(BinaryKind::Add), &["f16[N, 1]", "f16[4]"]), "f16[N, 4]");
        assert_eq!(infer_one(&by(BinaryKind::Xor), &["bool[N]", "bool[]"]), "bool[N]");
        assert!(refusal(&by(BinaryKind::Add), &["f32[N]", "f16[N]"]).starts_with("operand 1: expected f32"));
        assert!(refusal(&by(BinaryKind::Add), &["bool[N]", "bool[N]"]).starts_with("operand 0"));
        assert!(refusal(&by(BinaryKind::Pow), &["i32[N]", "i32[N]"]).starts_with("operand 0"));
        assert!(refusal(&by(BinaryKind::And), &["f32[N]", "f32[N]"]).starts_with("operand 0"));
        assert!(refusal(&by(BinaryKind::Add), &["f32[N]", "f32[M]"]).contains("do not broadcast"));
    }

    #[test]
    fn floats_by_known_values() {
        let (a, b) = (floats(DType::F32, &[2, 1], &[-7.0, 2.0]), floats(DType::F32, &[2], &[4.0, -2.0]));
        let expected: [(BinaryKind, [f64; 4]); 8] = [
            (BinaryKind::Add, [-3.0, -9.0, 6.0, 0.0]),
            (BinaryKind::Sub, [-11.0, -5.0, -2.0, 4.0]),
            (BinaryKind::Mul, [-28.0, 14.0, 8.0, -4.0]),
            (BinaryKind::Div, [-1.75, 3.5, 0.5, -1.0]),
            (BinaryKind::Rem, [-3.0, -1.0, 2.0, 0.0]),
            (BinaryKind::Pow, [2401.0, f64::from(1f32 / 49.0), 16.0, 0.25]),
            (BinaryKind::Max, [4.0, -2.0, 4.0, 2.0]),
            (BinaryKind::Min, [-7.0, -7.0, 2.0, -2.0]),
        ];
        for (kind, values) in expected {
            let got = eval_one(by(kind), &[a.clone(), b.clone()]).to_f64().unwrap();
            assert_eq!(got, values, "{kind:?}");
        }
        let nan = floats(DType::F32, &[1], &[f64::NAN]);
        for kind in [BinaryKind::Max, BinaryKind::Min] {
            for operands in [[nan.clone(), b.clone()], [b.clone(), nan.clone()]] {
                assert!(eval_one(by(kind), &operands).to_f64().unwrap().iter().all(|v| v.is_nan()));
            }
        }
        let x = floats(DType::F32, &[1], &[3.0]);
        let out = &try_eval(by(BinaryKind::Sub), &[x.clone(), x]).unwrap()[0];
        assert_eq!((out.exact.clone(), out.abs_terms.clone()), (Some(vec![0.0]), Some(vec![6.0])));
    }

    #[test]
    fn integers_are_exact_and_wrap() {
        let at = |kind, a, b| {
            let operands = [ints(DType::I64, &[1], &[a]), ints(DType::I64, &[1], &[b])];
            eval_one(by(kind), &operands).to_i64().unwrap()[0]
        };
        assert_eq!(at(BinaryKind::Add, i64::MAX, 1), i64::MIN);
        assert_eq!(at(BinaryKind::Sub, (1 << 53) + 1, 1), 1 << 53);
        assert_eq!(at(BinaryKind::Div, -7, 2), -3);
        assert_eq!(at(BinaryKind::Rem, -7, 2), -1);
        assert_eq!(at(BinaryKind::Div, i64::MIN, -1), i64::MIN);
        assert_eq!(
            (at(BinaryKind::And, 12, 10), at(BinaryKind::Or, 12, 10), at(BinaryKind::Xor, 12, 10)),
            (8, 14, 6)
        );
        for kind in [BinaryKind::Div, BinaryKind::Rem] {
            let operands = [ints(DType::I8, &[1], &[1]), ints(DType::I8, &[1], &[0])];
            assert!(eval_refusal(by(kind), &operands).contains("division by zero"));
        }
    }

    #[test]
    fn the_text_form_round_trips() {
        for kind in BinaryKind::ALL {
            let types =
                if *kind == BinaryKind::Pow { ["f32[N, 2]", "f32[]"] } else { ["i32[N, 2]", "i32[]"] };
            assert_eq!(round_trip(by(*kind), &types), format!("{} %x0, %x1", kind.name()));
        }
    }
}
