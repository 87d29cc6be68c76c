//! `glu`: a gated linear unit (Shazeer 2020): the first half of the last axis, activated, times the second half.
//!
//! Shapes: `[..., 2F] -> [..., F]`.
//! Dtypes: floats; the result has the operand's dtype.
//! Numerics: activation and product in f64, rounded once.

use std::sync::Arc;

use super::Activation;
use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::composite::{cast_to, check_float, wide_dtype};
use crate::types::Type;

/// A gated linear unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Glu {
    /// The function of the first half, the gate.
    pub activation: Activation,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "glu", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Glu { activation: reader.choice("activation", Activation::WORDS)? }))
}

impl Op for Glu {
    fn name(&self) -> &str {
        "glu"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().word("activation", self.activation.name())
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        check_float(0, x, 1)?;
        let mut dims = x.shape.dims().to_vec();
        if let Some(last) = dims.last_mut() {
            let half = last.floor_div(&2.into());
            if half.clone() * 2.into() != *last {
                return Err(operand_error(0, "an even last axis", x));
            }
            *last = half;
        }
        Ok(vec![Type::new(x.dtype, dims)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let x = cx.operands[0].to_f64()?;
        let half = cx.results[0].shape.last().copied().unwrap_or(0);
        let (mut values, mut abs) = (Vec::new(), Vec::new());
        for row in x.chunks_exact((2 * half).max(1)) {
            let (gate, up) = row.split_at(half);
            for (&g, &u) in gate.iter().zip(up) {
                values.push(self.activation.apply(g) * u);
                abs.push(self.activation.abs_terms(g, g.abs()) * u.abs());
            }
        }
        Ok(vec![Evaluated::computed(&cx.results[0], values, abs, 1)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 6.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let x = operands[0];
        let (dtype, wide) = (b.ty(x).dtype, wide_dtype(b, operands));
        let Some(half) = b.ty(operands[0]).shape.last().map(|last| last.floor_div(&2.into())) else {
            return Err(operand_error(0, "a float of rank 1 or more", b.ty(x)));
        };
        let gate = b.slice(x, -1, Dim::constant(0), half.clone())?;
        let up = b.slice(x, -1, half.clone(), half)?;
        let (gate, up) = (cast_to(b, gate, wide)?, cast_to(b, up, wide)?);
        let gate = self.activation.emit(b, gate)?;
        let y = b.mul(gate, up)?;
        Ok(Some(vec![cast_to(b, y, dtype)?]))
    }
}

impl Builder {
    /// The first half of the last axis, activated, times the second half.
    ///
    /// # Errors
    /// `InvalidArgument` where `x` is no float or its last axis is odd.
    pub fn glu(&mut self, x: Value, activation: Activation) -> Result<Value> {
        self.emit_one(Glu { activation }, &[x])
    }
}
