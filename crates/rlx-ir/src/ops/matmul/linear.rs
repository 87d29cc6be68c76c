//! `linear`: a product with a weight, and what commonly follows it.
//!
//! Shapes: `x[..., K], w[N, K][, bias[N]][, residual[..., N]] -> [..., N]`.
//! Dtypes: `x` is a float type or `q8_f32`; `w` is a float or block type, whose meaning is its decoded values. The result
//! has the dtype of `x` where that is a float, else f32. `bias` is a float; `residual` has the type of the result.
//! Numerics: `activation(x . w^T + bias) + residual`, all in f64, rounded once.

use std::sync::Arc;

use super::matmul::MatMul;
use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::activation::Activation;
use crate::ops::composite::{cast_to, check_float_shape, wide_dtype};
use crate::types::{Shape, TensorType, Type};

/// A product with a weight, with bias, activation and residual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Linear {
    /// Whether there is a bias operand.
    pub bias: bool,
    /// Whether there is a residual operand; it is the last.
    pub residual: bool,
    /// What is applied to the sum of product and bias.
    pub activation: Activation,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "linear", tier: Tier::Composite, parse };

const PRODUCT: MatMul = MatMul { transpose_b: true };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Linear {
        bias: reader.flag("bias")?,
        residual: reader.flag("residual")?,
        activation: reader.opt_choice("activation", Activation::WORDS)?.unwrap_or_default(),
    }))
}

impl Linear {
    /// The positions of bias and residual among the operands.
    pub fn operand_positions(self) -> (Option<usize>, Option<usize>) {
        let bias = self.bias.then_some(2);
        (bias, self.residual.then_some(2 + usize::from(self.bias)))
    }

    fn is_plain(self) -> bool {
        self == Self::default()
    }
}

impl Op for Linear {
    fn name(&self) -> &str {
        "linear"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        let attrs = Attrs::new().flag("bias", self.bias).flag("residual", self.residual);
        match self.activation {
            Activation::None => attrs,
            activation => attrs.word("activation", activation.name()),
        }
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        let arity = 2 + usize::from(self.bias) + usize::from(self.residual);
        check_arity(operands, arity..=arity)?;
        if operands[1].rank() != 2 {
            return Err(operand_error(1, "a weight [N, K]", &operands[1]));
        }
        let result = PRODUCT.result_type(&operands[0], &operands[1])?;
        let (bias, residual) = self.operand_positions();
        if let Some(at) = bias {
            check_float_shape(at, &operands[at], &Shape::from([operands[1].shape[0].clone()]))?;
        }
        if let Some(at) = residual
            && operands[at] != result
        {
            return Err(operand_error(
                at,
                format!("a residual of the result's type, {result}"),
                &operands[at],
            ));
        }
        Ok(vec![result])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        // The product in f64: bias, activation and residual come before the one rounding.
        let product_ty = TensorType::new(DType::F64, ty.shape.clone());
        let product_cx = EvalContext {
            operands: &cx.operands[..2],
            results: std::slice::from_ref(&product_ty),
            bindings: cx.bindings,
        };
        let product = PRODUCT.eval(&product_cx)?.remove(0);
        let (bias, residual) = self.operand_positions();
        let read = |at: Option<usize>| at.map(|i| cx.operands[i].to_f64()).transpose();
        let (bias, residual) = (read(bias)?, read(residual)?);
        let mut values = product.tensor.to_f64()?;
        let mut abs = product.abs_terms.unwrap_or_default();
        let width = ty.shape.last().copied().unwrap_or(1).max(1);
        for (i, (v, a)) in values.iter_mut().zip(abs.iter_mut()).enumerate() {
            let shift = bias.as_ref().map_or(0.0, |b| b[i % width]);
            let rest = residual.as_ref().map_or(0.0, |r| r[i]);
            let sum = *v + shift;
            *a = self.activation.abs_terms(sum, *a + shift.abs()) + rest.abs();
            *v = self.activation.apply(sum) + rest;
        }
        Ok(vec![Evaluated::computed(ty, values, abs, product.terms)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        let k = operands[1].shape.last().cloned().unwrap_or(1.into());
        let epilogue = 4 * i32::from(!self.is_plain());
        Cost::of_types(results[0].shape.elems() * (k * 2.into() + epilogue.into()), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let (x, w) = (operands[0], operands[1]);
        if self.is_plain() {
            return Ok(Some(vec![b.matmul_transposed(x, w)?]));
        }
        let dtype = if b.ty(x).dtype.is_float() { b.ty(x).dtype } else { DType::F32 };
        let wide = wide_dtype(b, operands);
        let x = if b.ty(x).dtype.is_float() { cast_to(b, x, wide)? } else { x };
        let product = b.matmul_transposed(x, w)?;
        let mut y = cast_to(b, product, wide)?;
        let (bias, residual) = self.operand_positions();
        if let Some(at) = bias {
            let bias = cast_to(b, operands[at], wide)?;
            y = b.add(y, bias)?;
        }
        y = self.activation.emit(b, y)?;
        if let Some(at) = residual {
            let residual = cast_to(b, operands[at], wide)?;
            y = b.add(y, residual)?;
        }
        Ok(Some(vec![cast_to(b, y, dtype)?]))
    }
}

impl Builder {
    /// `activation(x . w^T + bias) + residual`; the flags of `linear` follow from the operands that are given.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn linear(
        &mut self,
        x: Value,
        w: Value,
        linear: Linear,
        bias: Option<Value>,
        residual: Option<Value>,
    ) -> Result<Value> {
        let linear = Linear { bias: bias.is_some(), residual: residual.is_some(), ..linear };
        let operands: Vec<Value> = [x, w].into_iter().chain(bias).chain(residual).collect();
        self.emit_one(linear, &operands)
    }
}
