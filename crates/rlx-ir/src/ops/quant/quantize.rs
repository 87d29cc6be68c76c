//! `quantize`: floats to a block type.
//!
//! Shapes: `[.., K] -> [.., K]`; `K` is a constant multiple of the block. Dtypes: from a float to a block type. Numerics: the
//! values are rounded to f32 and encoded row by row as [`BlockType::encode`] says, without importances. Every device makes the
//! same bytes of `q8_f32`, the format of quantised activations. Values that are not finite are an error, but for `q8_f32`,
//! which makes NaN of their block.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value, check_type};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::quant::BlockType;
use crate::tensor::Tensor;
use crate::types::Type;

/// Floats to a block type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quantize {
    /// The dtype of the result.
    pub to: BlockType,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "quantize", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    match reader.dtype("to")? {
        DType::Block(to) => Ok(Arc::new(Quantize { to })),
        other => crate::bail!(InvalidArgument, "quantize: to must be a block type, got {other}"),
    }
}

impl Op for Quantize {
    fn name(&self) -> &str {
        "quantize"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().dtype("to", DType::Block(self.to))
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        if !x.dtype.is_float() {
            return Err(operand_error(0, "a float", x));
        }
        let result = Type::new(DType::Block(self.to), x.shape.clone());
        match check_type(&result) {
            Ok(()) => Ok(vec![result]),
            Err(_) => {
                let block = self.to.block_elems();
                Err(operand_error(0, format!("a last axis that is a constant multiple of {block}"), x))
            }
        }
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let tensor = Tensor::from_f64(cx.results[0].clone(), &cx.operands[0].to_f64()?)?;
        Ok(vec![Evaluated::moved(tensor)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(operands[0].shape.elems(), operands, results)
    }
}

impl Builder {
    /// `x` as blocks of type `to`.
    ///
    /// # Errors
    /// `InvalidArgument` where `x` is no float, or blocks do not divide its last axis.
    pub fn quantize(&mut self, x: Value, to: BlockType) -> Result<Value> {
        self.emit_one(Quantize { to }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::ops::testing::{attr_refusal, eval_one, floats, infer_one, refusal, round_trip, try_eval};

    const Q8: Quantize = Quantize { to: BlockType::Q8_F32 };

    #[test]
    fn blocks_divide_the_last_axis() {
        assert_eq!(infer_one(&Q8, &["f16[N, 64]"]), "q8_f32[N, 64]");
        assert_eq!(infer_one(&Quantize { to: BlockType::Q6_K }, &["f32[256]"]), "q6_k[256]");
        assert!(
            refusal(&Q8, &["f32[N, 48]"])
                .contains("operand 0: expected a last axis that is a constant multiple of 32")
        );
        assert!(refusal(&Q8, &["f32[64, N]"]).starts_with("operand 0"));
        assert!(refusal(&Q8, &["f32[]"]).starts_with("operand 0"));
        assert!(refusal(&Q8, &["i32[32]"]).starts_with("operand 0: expected a float"));
        assert!(refusal(&Q8, &["q8_0[32]"]).starts_with("operand 0: expected a float"));
        assert!(attr_refusal("quantize", "to = f16").contains("must be a block type"));
    }

    #[test]
    fn a_block_of_q8_f32_by_hand() {
        // The largest magnitude is 127, so the scale is 1 and the quants are the values, rounded to even.
        let mut x = vec![0.0; 64];
        x[..6].copy_from_slice(&[127.0, -127.0, 0.5, 1.5, -2.4, 3.0]);
        x[32] = f64::INFINITY;
        let y = eval_one(Q8, &[floats(DType::F32, &[1, 64], &x)]);
        let (first, second) = y.bytes().split_at(36);
        assert_eq!(first[..4], 1f32.to_le_bytes());
        assert_eq!(first[4..11], [127, 129, 0, 2, 254, 3, 0]);
        assert!(f32::from_le_bytes([second[0], second[1], second[2], second[3]]).is_nan());
    }

    #[test]
    fn what_a_file_format_cannot_hold_is_an_error() {
        let x = floats(DType::F32, &[32], &[f64::NAN; 32]);
        let e = try_eval(Quantize { to: BlockType::Q8_0 }, &[x]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::NonFinite);
    }

    #[test]
    fn every_block_type_encodes_zeros_to_zeros_and_round_trips_as_text() {
        for to in BlockType::ALL {
            let x = floats(DType::F32, &[2, 256], &[0.0; 512]);
            let y = eval_one(Quantize { to }, &[x]);
            assert_eq!(y.dtype(), DType::Block(to));
            assert!(y.to_f64().unwrap().iter().all(|v| *v == 0.0), "{}", to.name());
            let text = round_trip(Quantize { to }, &["f32[N, 256]"]);
            assert_eq!(text, format!("quantize %x0 {{to = {}}}", to.name()));
        }
    }
}
