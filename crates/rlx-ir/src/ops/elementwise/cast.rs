//! `cast`: the same values in another dtype.
//!
//! Shapes: `[...] -> [...]`. Dtypes: from any scalar type to any scalar type. Numerics: to a float rounds once, to nearest, ties
//! to even; a float to an integer goes toward zero and saturates, NaN gives 0; an integer to a narrower one keeps the low
//! bits; to `bool` is whether the value is not 0 (NaN is not 0); `bool` counts as 0 and 1.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::tensor::Tensor;
use crate::types::Type;

/// The same values in another dtype.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cast {
    /// The dtype of the result.
    pub to: DType,
}

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[OpDef { name: "cast", tier: Tier::Core, parse }];

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Cast { to: reader.dtype("to")? }))
}

impl Op for Cast {
    fn name(&self) -> &str {
        "cast"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().dtype("to", self.to)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        if self.to.is_block() {
            crate::bail!(InvalidArgument, "cast to {}: use quantize", self.to);
        }
        if x.dtype.is_block() {
            return Err(operand_error(0, "a dtype without blocks (else use dequantize)", x));
        }
        Ok(vec![Type::new(self.to, x.shape.clone())])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (x, ty) = (cx.operands[0], cx.results[0].clone());
        let tensor = if x.dtype().is_float() {
            Tensor::from_f64(ty, &x.to_f64()?)?
        } else {
            Tensor::from_i64(ty, &x.to_i64()?)?
        };
        Ok(vec![Evaluated::moved(tensor)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems(), operands, results)
    }
}

impl Builder {
    /// The values of `x` as `to`.
    ///
    /// # Errors
    /// `InvalidArgument` where either dtype is a block type.
    pub fn cast(&mut self, x: Value, to: DType) -> Result<Value> {
        self.emit_one(Cast { to }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{attr_refusal, eval_one, floats, infer_one, ints, refusal, round_trip};
    use crate::quant::BlockType;

    fn cast(x: &Tensor, to: DType) -> Tensor {
        eval_one(Cast { to }, std::slice::from_ref(x))
    }

    #[test]
    fn every_pair_of_scalar_types_keeps_zero_and_one() {
        for from in DType::SCALARS {
            let x = ints(from, &[2], &[0, 1]);
            for to in DType::SCALARS {
                assert_eq!(cast(&x, to), ints(to, &[2], &[0, 1]), "{from} to {to}");
            }
        }
    }

    #[test]
    fn block_types_are_refused() {
        assert!(refusal(&Cast { to: DType::Block(BlockType::Q8_0) }, &["f32[32]"]).contains("use quantize"));
        assert!(refusal(&Cast { to: DType::F32 }, &["q8_0[32]"]).contains("use dequantize"));
        assert!(attr_refusal("cast", "to = f31").contains("to must be a dtype"));
        assert!(attr_refusal("cast", "to = f32, from = f16").contains("unknown attribute from"));
    }

    #[test]
    fn a_float_goes_toward_zero_and_saturates() {
        let values = [1.9, -1.9, 300.0, -300.0, 1e30, -1e30, f64::INFINITY, f64::NAN];
        let x = floats(DType::F64, &[8], &values);
        let at = |to| cast(&x, to).to_i64().unwrap();
        assert_eq!(at(DType::I8), [1, -1, 127, -128, 127, -128, 127, 0]);
        assert_eq!(at(DType::U8), [1, 0, 255, 0, 255, 0, 255, 0]);
        assert_eq!(at(DType::I16), [1, -1, 300, -300, 32767, -32768, 32767, 0]);
        let (lo, hi) = (i64::from(i32::MIN), i64::from(i32::MAX));
        assert_eq!(at(DType::I32), [1, -1, 300, -300, hi, lo, hi, 0]);
        assert_eq!(at(DType::I64), [1, -1, 300, -300, i64::MAX, i64::MIN, i64::MAX, 0]);
        assert_eq!(at(DType::U32), [1, 0, 300, 0, 4_294_967_295, 0, 4_294_967_295, 0]);
        assert_eq!(at(DType::Bool), [1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!(cast(&floats(DType::F32, &[2], &[-0.0, 0.4]), DType::Bool).to_i64().unwrap(), [0, 1]);
    }

    #[test]
    fn integers_keep_their_low_bits() {
        let x = ints(DType::I64, &[4], &[257, -1, (1 << 40) + 5, i64::MIN]);
        assert_eq!(cast(&x, DType::U8).to_i64().unwrap(), [1, 255, 5, 0]);
        assert_eq!(cast(&x, DType::I8).to_i64().unwrap(), [1, -1, 5, 0]);
        assert_eq!(cast(&x, DType::I32).to_i64().unwrap(), [257, -1, 5, 0]);
        assert_eq!(cast(&x, DType::U32).to_i64().unwrap(), [257, 4_294_967_295, 5, 0]);
        assert_eq!(cast(&x, DType::I64), x);
    }

    #[test]
    fn large_integers_round_once() {
        // 2^53 + 1 lies between two f64; 2^62 + 2^54 is halfway between two bf16, and one more is nearer to the upper.
        let x = ints(DType::I64, &[3], &[(1 << 53) + 1, (1 << 62) + (1 << 54), (1 << 62) + (1 << 54) + 1]);
        assert_eq!(cast(&x, DType::F64).to_f64().unwrap()[0], 9_007_199_254_740_992.0);
        let got = cast(&x, DType::BF16).to_f64().unwrap();
        assert_eq!(got[1..], [2f64.powi(62), 2f64.powi(62) + 2f64.powi(55)]);
        let x = ints(DType::I32, &[2], &[16_777_217, 16_777_219]);
        assert_eq!(cast(&x, DType::F32).to_f64().unwrap(), [16_777_216.0, 16_777_220.0]);
    }

    #[test]
    fn floats_round_to_nearest_even_once() {
        // 1 + 2^-11 is halfway between two f16; any excess decides upward, even one that f32 cannot hold.
        let x =
            [1.0 + 2f64.powi(-11), 1.0 + 2f64.powi(-11) + 2f64.powi(-40), 65520.0, 65519.9, 2f64.powi(-25)];
        let y = cast(&floats(DType::F64, &[5], &x), DType::F16).to_f64().unwrap();
        assert_eq!(y, [1.0, 1.0 + 2f64.powi(-10), f64::INFINITY, 65504.0, 0.0]);
        let x = [1.0 + 2f64.powi(-8), 1.0 + 2f64.powi(-8) + 2f64.powi(-40), 1e39, -2f64.powi(-134) * 1.1];
        let y = cast(&floats(DType::F64, &[4], &x), DType::BF16).to_f64().unwrap();
        assert_eq!(y, [1.0, 1.0 + 2f64.powi(-7), f64::INFINITY, -2f64.powi(-133)]);
    }

    #[test]
    fn the_text_form_round_trips() {
        assert_eq!(infer_one(&Cast { to: DType::I8 }, &["f32[N, 2]"]), "i8[N, 2]");
        for to in DType::SCALARS {
            assert_eq!(round_trip(Cast { to }, &["f32[N]"]), format!("cast %x0 {{to = {to}}}"));
        }
    }
}
