//! `silu`: the sigmoid linear unit, `x * sigmoid(x)` (Elfwing, Uchibe and Doya 2017; also called swish).
//!
//! Shapes: `[...] -> [...]`.
//! Dtypes: floats; the result has the operand's dtype.
//! Numerics: the function in f64, rounded once.

use std::sync::Arc;

use super::Activation;
use super::gelu::{decompose_elementwise, eval_elementwise, infer_elementwise};
use crate::attrs::AttrReader;
use crate::builder::{Builder, Value};
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier};
use crate::types::Type;

/// The sigmoid linear unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Silu;

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "silu", tier: Tier::Composite, parse };

fn parse(_: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Silu))
}

impl Op for Silu {
    fn name(&self) -> &str {
        "silu"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        infer_elementwise(operands)
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        eval_elementwise(Activation::Silu, cx)
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 4.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        decompose_elementwise(Activation::Silu, b, operands)
    }
}

impl Builder {
    /// The sigmoid linear unit.
    ///
    /// # Errors
    /// `InvalidArgument` where `x` is no float.
    pub fn silu(&mut self, x: Value) -> Result<Value> {
        self.emit_one(Silu, &[x])
    }
}
