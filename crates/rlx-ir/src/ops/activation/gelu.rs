//! `gelu`: the Gaussian error linear unit (Hendrycks and Gimpel 2016).
//!
//! Shapes: `[...] -> [...]`.
//! Dtypes: floats; the result has the operand's dtype.
//! Numerics: the function in f64, rounded once. `approximate = none` is the exact form with the error function,
//! `approximate = tanh` the form that many models are trained with; they differ by up to 5e-4.

use std::sync::Arc;

use super::Activation;
use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity};
use crate::ops::composite::{cast_to, check_float, wide_dtype};
use crate::types::Type;

/// Which form of gelu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Approximate {
    /// The exact form.
    #[default]
    None,
    /// The form with tanh.
    Tanh,
}

const FORMS: &[(&str, Approximate)] = &[("none", Approximate::None), ("tanh", Approximate::Tanh)];

/// The Gaussian error linear unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gelu {
    /// Which form.
    pub approximate: Approximate,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "gelu", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let approximate = reader.opt_choice("approximate", FORMS)?.unwrap_or_default();
    Ok(Arc::new(Gelu { approximate }))
}

impl Gelu {
    /// The function.
    pub fn activation(self) -> Activation {
        match self.approximate {
            Approximate::None => Activation::Gelu,
            Approximate::Tanh => Activation::GeluTanh,
        }
    }
}

impl Op for Gelu {
    fn name(&self) -> &str {
        "gelu"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        match self.approximate {
            Approximate::None => Attrs::new(),
            Approximate::Tanh => Attrs::new().word("approximate", "tanh"),
        }
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        infer_elementwise(operands)
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        eval_elementwise(self.activation(), cx)
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 8.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        decompose_elementwise(self.activation(), b, operands)
    }
}

pub(super) fn infer_elementwise(operands: &[Type]) -> Result<Vec<Type>> {
    check_arity(operands, 1..=1)?;
    check_float(0, &operands[0], 0)?;
    Ok(operands.to_vec())
}

pub(super) fn eval_elementwise(activation: Activation, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
    let x = cx.operands[0].to_f64()?;
    let values = x.iter().map(|&x| activation.apply(x)).collect();
    let abs = x.iter().map(|&x| activation.abs_terms(x, x.abs())).collect();
    Ok(vec![Evaluated::computed(&cx.results[0], values, abs, 1)?])
}

pub(super) fn decompose_elementwise(
    activation: Activation,
    b: &mut Builder,
    operands: &[Value],
) -> Result<Option<Vec<Value>>> {
    let dtype = b.ty(operands[0]).dtype;
    let wide = wide_dtype(b, operands);
    let x = cast_to(b, operands[0], wide)?;
    let y = activation.emit(b, x)?;
    Ok(Some(vec![cast_to(b, y, dtype)?]))
}

impl Builder {
    /// The Gaussian error linear unit.
    ///
    /// # Errors
    /// `InvalidArgument` where `x` is no float.
    pub fn gelu(&mut self, x: Value, approximate: Approximate) -> Result<Value> {
        self.emit_one(Gelu { approximate }, &[x])
    }
}
