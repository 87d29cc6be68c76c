//! `neg`, `abs`, `exp`, ...: functions of one element.
//!
//! Shapes: `[...] -> [...]`. Dtypes: as each function says; the result has the operand's dtype.
//! Numerics: the function in f64, rounded once; integers are exact and wrap.

use std::sync::Arc;

use crate::attrs::AttrReader;
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::tensor::Tensor;
use crate::types::Type;

/// Which dtypes a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Domain {
    Float,
    /// Floats and integers.
    Number,
    Bool,
}

macro_rules! unary_functions {
    ($($variant:ident $name:literal $domain:ident $method:ident $doc:literal $f:expr;)*) => {
        /// The functions of one element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum UnaryKind {
            $(#[doc = $doc] $variant,)*
        }

        impl UnaryKind {
            /// Every function.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            fn domain(self) -> Domain {
                match self { $(Self::$variant => Domain::$domain,)* }
            }

            /// The function in f64.
            pub fn apply(self, x: f64) -> f64 {
                let f: fn(f64) -> f64 = match self { $(Self::$variant => $f,)* };
                f(x)
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
                /// `InvalidArgument` where the dtype does not fit.
                pub fn $method(&mut self, x: Value) -> Result<Value> {
                    self.emit_one(Unary { kind: UnaryKind::$variant }, &[x])
                }
            )*
        }
    };
}

unary_functions! {
    Neg "neg" Number neg "`-x`" |x| -x;
    Abs "abs" Number abs "`|x|`" f64::abs;
    Sign "sign" Number sign "-1, 0 or 1; NaN stays NaN" |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x };
    Exp "exp" Float exp "e to the power of x" libm::exp;
    Log "log" Float log "The natural logarithm" libm::log;
    Sqrt "sqrt" Float sqrt "The square root" f64::sqrt;
    Rsqrt "rsqrt" Float rsqrt "`1 / sqrt(x)`" |x| 1.0 / x.sqrt();
    Recip "recip" Float recip "`1 / x`" |x| 1.0 / x;
    Sin "sin" Float sin "The sine of x radians" libm::sin;
    Cos "cos" Float cos "The cosine of x radians" libm::cos;
    Tanh "tanh" Float tanh "The hyperbolic tangent" libm::tanh;
    Erf "erf" Float erf "The error function" libm::erf;
    Sigmoid "sigmoid" Float sigmoid "`1 / (1 + exp(-x))`" |x| 1.0 / (1.0 + libm::exp(-x));
    Relu "relu" Number relu "`max(x, 0)`; NaN stays NaN" |x| if x < 0.0 { 0.0 } else { x };
    Floor "floor" Float floor "The largest integer that is not above x" f64::floor;
    Ceil "ceil" Float ceil "The smallest integer that is not below x" f64::ceil;
    Round "round" Float round "The nearest integer, ties to even" f64::round_ties_even;
    Not "not" Bool logical_not "Whether x is false" |x| if x == 0.0 { 1.0 } else { 0.0 };
}

/// A function of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Unary {
    /// The function.
    pub kind: UnaryKind,
}

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let kind = UnaryKind::ALL.iter().copied().find(|k| k.name() == reader.op());
    match kind {
        Some(kind) => Ok(Arc::new(Unary { kind })),
        None => Err(operand_error(0, "an elementwise function", reader.op())),
    }
}

impl Op for Unary {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let dtype = operands[0].dtype;
        let (fits, expected) = match self.kind.domain() {
            Domain::Float => (dtype.is_float(), "a float"),
            Domain::Number => (dtype.is_float() || dtype.is_int(), "a float or an integer"),
            Domain::Bool => (dtype == DType::Bool, "bool"),
        };
        if fits { Ok(operands.to_vec()) } else { Err(operand_error(0, expected, &operands[0])) }
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        if ty.dtype.is_float() {
            let values = cx.operands[0].to_f64()?.into_iter().map(|x| self.kind.apply(x)).collect();
            return Ok(vec![Evaluated::elementwise(ty, values)?]);
        }
        let values = cx.operands[0].to_i64()?;
        let apply = |x: i64| match self.kind {
            UnaryKind::Neg => x.wrapping_neg(),
            UnaryKind::Abs => x.wrapping_abs(),
            UnaryKind::Sign => x.signum(),
            UnaryKind::Relu => x.max(0),
            _ => self.kind.apply(x as f64) as i64,
        };
        let values: Vec<i64> = values.into_iter().map(apply).collect();
        Ok(vec![Evaluated::moved(Tensor::from_i64(ty.clone(), &values)?)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems(), operands, results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{eval_one, floats, infer_one, ints, refusal, round_trip};

    fn at(kind: UnaryKind, x: &Tensor) -> Tensor {
        eval_one(Unary { kind }, std::slice::from_ref(x))
    }

    #[test]
    fn each_function_by_known_values() {
        let known: [(UnaryKind, f64, f64); 17] = [
            (UnaryKind::Neg, 1.5, -1.5),
            (UnaryKind::Abs, -1.5, 1.5),
            (UnaryKind::Sign, -7.0, -1.0),
            (UnaryKind::Exp, 1.0, std::f64::consts::E),
            (UnaryKind::Log, 2.0, std::f64::consts::LN_2),
            (UnaryKind::Sqrt, 2.0, std::f64::consts::SQRT_2),
            (UnaryKind::Rsqrt, 4.0, 0.5),
            (UnaryKind::Recip, 8.0, 0.125),
            (UnaryKind::Sin, std::f64::consts::FRAC_PI_6, 0.5),
            (UnaryKind::Cos, std::f64::consts::FRAC_PI_3, 0.5),
            (UnaryKind::Tanh, 0.549_306_144_334_054_8, 0.5),
            (UnaryKind::Erf, 0.476_936_276_204_469_9, 0.5),
            (UnaryKind::Sigmoid, -1.098_612_288_668_109_8, 0.25),
            (UnaryKind::Relu, -3.0, 0.0),
            (UnaryKind::Floor, -1.5, -2.0),
            (UnaryKind::Ceil, -1.5, -1.0),
            (UnaryKind::Round, 2.5, 2.0),
        ];
        assert_eq!(known.len() + 1, UnaryKind::ALL.len(), "`not` has a test of its own");
        for (kind, x, y) in known {
            let got = at(kind, &floats(DType::F64, &[1], &[x])).to_f64().unwrap()[0];
            assert!((got - y).abs() <= 1e-15 * y.abs().max(1.0), "{kind:?}: {got} {y}");
            let nan = at(kind, &floats(DType::F32, &[1], &[f64::NAN])).to_f64().unwrap()[0];
            assert!(nan.is_nan(), "{kind:?}");
            assert_eq!(round_trip(Unary { kind }, &["f32[N]"]), format!("{} %x0", kind.name()));
        }
        assert_eq!(at(UnaryKind::Not, &ints(DType::Bool, &[2], &[0, 1])).to_i64().unwrap(), [1, 0]);
    }

    #[test]
    fn large_integers_are_exact_and_wrap() {
        let x = ints(DType::I64, &[3], &[i64::MAX, -((1 << 53) + 1), i64::MIN]);
        let big = (1 << 53) + 1;
        assert_eq!(at(UnaryKind::Relu, &x).to_i64().unwrap(), [i64::MAX, 0, 0]);
        assert_eq!(at(UnaryKind::Sign, &x).to_i64().unwrap(), [1, -1, -1]);
        assert_eq!(at(UnaryKind::Abs, &x).to_i64().unwrap(), [i64::MAX, big, i64::MIN]);
        assert_eq!(at(UnaryKind::Neg, &x).to_i64().unwrap(), [-i64::MAX, big, i64::MIN]);
    }

    #[test]
    fn dtypes_that_do_not_fit_are_refused() {
        assert_eq!(infer_one(&Unary { kind: UnaryKind::Neg }, &["i8[N]"]), "i8[N]");
        for (kind, ty) in [(UnaryKind::Exp, "i32[N]"), (UnaryKind::Neg, "bool[N]"), (UnaryKind::Not, "i8[N]")]
        {
            assert!(refusal(&Unary { kind }, &[ty]).starts_with("operand 0"), "{kind:?}");
        }
        assert!(refusal(&Unary { kind: UnaryKind::Relu }, &["q8_0[32]"]).starts_with("operand 0"));
    }
}
