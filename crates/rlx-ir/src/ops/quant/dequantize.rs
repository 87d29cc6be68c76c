//! `dequantize`: a block type to floats.
//!
//! Shapes: `[.., K] -> [.., K]`. Dtypes: from a block type to a float. Numerics: the decoded values, exact in f32, rounded once
//! to the result's dtype.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::tensor::Tensor;
use crate::types::Type;

/// A block type to floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dequantize {
    /// The dtype of the result.
    pub to: DType,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "dequantize", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Dequantize { to: reader.dtype("to")? }))
}

impl Op for Dequantize {
    fn name(&self) -> &str {
        "dequantize"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().dtype("to", self.to)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        if !self.to.is_float() {
            crate::bail!(InvalidArgument, "to must be a float, got {}", self.to);
        }
        if !x.dtype.is_block() {
            return Err(operand_error(0, "a block type", x));
        }
        Ok(vec![Type::new(self.to, x.shape.clone())])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let tensor = Tensor::from_f64(cx.results[0].clone(), &cx.operands[0].to_f64()?)?;
        Ok(vec![Evaluated::moved(tensor)])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems(), operands, results)
    }
}

impl Builder {
    /// The decoded values of `x` as `to`.
    ///
    /// # Errors
    /// `InvalidArgument` where `x` has no blocks, or `to` is no float.
    pub fn dequantize(&mut self, x: Value, to: DType) -> Result<Value> {
        self.emit_one(Dequantize { to }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{eval_one, infer_one, refusal, round_trip};
    use crate::quant::BlockType;
    use crate::types::TensorType;

    #[test]
    fn blocks_become_floats() {
        assert_eq!(infer_one(&Dequantize { to: DType::F16 }, &["q4_k[N, 256]"]), "f16[N, 256]");
        assert!(
            refusal(&Dequantize { to: DType::F16 }, &["f32[32]"])
                .starts_with("operand 0: expected a block type")
        );
        assert!(refusal(&Dequantize { to: DType::I32 }, &["q8_0[32]"]).contains("to must be a float"));
    }

    #[test]
    fn values_are_decoded_and_rounded_once() {
        // Scale 1 + 2^-13, which f16 cannot hold; quants 1 and -2.
        let mut bytes = (1f32 + 2f32.powi(-13)).to_le_bytes().to_vec();
        bytes.extend([1, 254]);
        bytes.extend([0; 30]);
        let x = Tensor::from_bytes(TensorType::new(DType::Block(BlockType::Q8_F32), [32]), bytes).unwrap();
        let at = |to| eval_one(Dequantize { to }, std::slice::from_ref(&x)).to_f64().unwrap()[..3].to_vec();
        let exact = 1.0 + 2f64.powi(-13);
        assert_eq!(at(DType::F32), [exact, -2.0 * exact, 0.0]);
        assert_eq!(at(DType::F64), [exact, -2.0 * exact, 0.0]);
        assert_eq!(at(DType::F16), [1.0, -2.0, 0.0]);
        assert_eq!(at(DType::BF16), [1.0, -2.0, 0.0]);
    }

    #[test]
    fn the_text_form_round_trips() {
        for to in [DType::F32, DType::F16, DType::BF16, DType::F64] {
            assert_eq!(
                round_trip(Dequantize { to }, &["q8_0[N, 32]"]),
                format!("dequantize %x0 {{to = {to}}}")
            );
        }
    }
}
