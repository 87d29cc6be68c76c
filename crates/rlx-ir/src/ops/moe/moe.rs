//! `moe`: a mixture of gated experts (Shazeer et al. 2017): each token goes through the experts that a router chose for it.
//!
//! Shapes: `x[N, H], weights[N, K], experts[N, K], gate[E, F, H], up[E, F, H], down[E, H, F] -> [N, H]`. Row `n` of `experts` names the
//! experts of token `n`, and the same row of `weights` what each counts for. An index that is negative, or `E` or more, adds nothing,
//! whatever its weight; one that stands twice adds twice.
//! Dtypes: `x` and `weights` are floats, each its own; `experts` are i32. The matrices are float or block types, each its own,
//! whose meaning is their decoded values. The result has the dtype of `x`.
//! Numerics: the sum over k of `weights[k] * down_e . (activation(gate_e . x) * (up_e . x))`, all in f64, rounded once. An expert
//! that was not chosen does not reach the result, not even with values that are not finite.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::activation::Activation;
use crate::ops::composite::{cast_to, wide_dtype};
use crate::ops::reduce::reduce::KeepDims;
use crate::types::{Shape, Type};

/// A mixture of gated experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moe {
    /// The function of the gate.
    pub activation: Activation,
}

/// The operands of [`Moe`], in their order.
#[derive(Clone, Copy, Debug)]
pub struct MoeOperands {
    /// The tokens' vectors, `[N, H]`.
    pub x: Value,
    /// What each chosen expert counts for, `[N, K]`.
    pub weights: Value,
    /// The chosen experts, i32 `[N, K]`.
    pub experts: Value,
    /// The gates, `[E, F, H]`.
    pub gate: Value,
    /// What is gated, `[E, F, H]`.
    pub up: Value,
    /// What leads back, `[E, H, F]`.
    pub down: Value,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "moe", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Moe { activation: reader.choice("activation", Activation::WORDS)? }))
}

impl Op for Moe {
    fn name(&self) -> &str {
        "moe"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().word("activation", self.activation.name())
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 6..=6)?;
        let [x, weights, experts, gate, up, down] = operands else {
            return Err(operand_error(0, "six operands", operands.len()));
        };
        if !x.dtype.is_float() || x.rank() != 2 {
            return Err(operand_error(0, "a float [N, H]", x));
        }
        let (tokens, hidden) = (&x.shape[0], &x.shape[1]);
        if !weights.dtype.is_float() || weights.rank() != 2 || weights.shape[0] != *tokens {
            return Err(operand_error(1, format!("a float [{tokens}, K]"), weights));
        }
        if experts.dtype != DType::I32 || experts.shape != weights.shape {
            return Err(operand_error(2, format!("an index for each weight: i32{}", weights.shape), experts));
        }
        let matrices = |ty: &Type| (ty.dtype.is_float() || ty.dtype.is_block()) && ty.rank() == 3;
        if !matrices(gate) || gate.shape[2] != *hidden {
            return Err(operand_error(3, format!("a float or block type [E, F, {hidden}]"), gate));
        }
        if !matrices(up) || up.shape != gate.shape {
            return Err(operand_error(
                4,
                format!("a float or block type of the gate's shape {}", gate.shape),
                up,
            ));
        }
        let back = Shape::from([gate.shape[0].clone(), hidden.clone(), gate.shape[1].clone()]);
        if !matrices(down) || down.shape != back {
            return Err(operand_error(5, format!("a float or block type {back}"), down));
        }
        Ok(vec![x.clone()])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        let (tokens, hidden) = (ty.shape[0], ty.shape[1]);
        let (count, inner) = (cx.operands[3].shape()[0], cx.operands[3].shape()[1]);
        let chosen = cx.operands[1].shape()[1];
        let [x, weights, gate, up, down] = [0, 1, 3, 4, 5].map(|i| cx.operands[i].to_f64());
        let (x, weights, gate, up, down) = (x?, weights?, gate?, up?, down?);
        let experts = cx.operands[2].to_i64()?;
        let mut values = vec![0.0; tokens * hidden];
        let mut abs = values.clone();
        for n in 0..tokens {
            let x = &x[n * hidden..][..hidden];
            let out = n * hidden..(n + 1) * hidden;
            for k in 0..chosen {
                let Some(e) = usize::try_from(experts[n * chosen + k]).ok().filter(|e| *e < count) else {
                    continue;
                };
                let weight = weights[n * chosen + k];
                let size = inner * hidden;
                let [gate, up, down] = [&gate, &up, &down].map(|m| &m[e * size..][..size]);
                let (mut product, mut product_abs) = (Vec::with_capacity(inner), Vec::with_capacity(inner));
                for f in 0..inner {
                    let ((g, g_abs), (u, u_abs)) =
                        (dot(&gate[f * hidden..][..hidden], x), dot(&up[f * hidden..][..hidden], x));
                    let activated = self.activation.apply(g);
                    product.push(activated * u);
                    product_abs.push(self.activation.abs_terms(g, g_abs) * u.abs() + activated.abs() * u_abs);
                }
                for (h, (value, abs)) in values[out.clone()].iter_mut().zip(&mut abs[out.clone()]).enumerate()
                {
                    let row = &down[h * inner..][..inner];
                    *value += weight * dot(row, &product).0;
                    let terms: f64 = row.iter().zip(&product_abs).map(|(d, a)| d.abs() * a).sum();
                    *abs += weight.abs() * terms;
                }
            }
        }
        Ok(vec![Evaluated::computed(ty, values, abs, hidden + inner * chosen)?])
    }

    /// The matrices count as a whole: which of them are read is known only when the router has chosen.
    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        let (hidden, inner) = (operands[0].shape[1].clone(), operands[3].shape[1].clone());
        let each = inner * (hidden * 6.into() + 6.into());
        Cost::of_types(operands[1].shape.elems() * each, operands, results)
    }

    /// All experts run on all tokens, and what was not chosen is left out: right everywhere, and the work of `E` experts.
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let [x, weights, experts, gate, up, down] = operands else {
            return Err(operand_error(0, "six operands", operands.len()));
        };
        let dtype = b.ty(*x).dtype;
        let wide = wide_dtype(b, operands);
        let [tokens, hidden] = [0, 1].map(|i| b.shape(*x)[i].clone());
        let (count, chosen) = (b.shape(*gate)[0].clone(), b.shape(*weights)[1].clone());
        let one = Dim::constant(1);

        let wide_x = cast_to(b, *x, wide)?;
        let wide_x = b.reshape(wide_x, [one.clone(), tokens.clone(), hidden])?;
        let gated = b.matmul_transposed(wide_x, *gate)?;
        let gated = self.activation.emit(b, gated)?;
        let raised = b.matmul_transposed(wide_x, *up)?;
        let product = b.mul(gated, raised)?;
        let every = b.matmul_transposed(product, *down)?;

        // [N, K, E]: which expert each choice is.
        let index = b.iota([count.clone()], 0, DType::I32)?;
        let choices = b.reshape(*experts, [tokens.clone(), chosen.clone(), one.clone()])?;
        let is = b.eq(choices, index)?;
        let zero = b.scalar(wide, 0.0)?;
        let shares = cast_to(b, *weights, wide)?;
        let shares = b.reshape(shares, [tokens.clone(), chosen, one.clone()])?;
        let shares = b.select(is, shares, zero)?;
        let shares = b.reduce_sum(shares, &[1], KeepDims::No)?;
        let times = b.cast(is, DType::I32)?;
        let times = b.reduce_sum(times, &[1], KeepDims::No)?;
        let none = b.scalar(DType::I32, 0.0)?;
        let any = b.gt(times, none)?;
        let per_expert = |b: &mut Builder, x: Value| {
            let x = b.transpose(x, [1, 0])?;
            b.reshape(x, [count.clone(), tokens.clone(), one.clone()])
        };
        let (shares, any) = (per_expert(b, shares)?, per_expert(b, any)?);
        let weighed = b.mul(every, shares)?;
        let counted = b.select(any, weighed, zero)?;
        let sum = b.reduce_sum(counted, &[0], KeepDims::No)?;
        Ok(Some(vec![cast_to(b, sum, dtype)?]))
    }
}

/// The sum of products, and of their absolute values.
fn dot(a: &[f64], b: &[f64]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(sum, abs), (a, b)| (sum + a * b, abs + (a * b).abs()))
}

impl Builder {
    /// The tokens through the experts that were chosen for each.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn moe(&mut self, operands: MoeOperands, activation: Activation) -> Result<Value> {
        let MoeOperands { x, weights, experts, gate, up, down } = operands;
        self.emit_one(Moe { activation }, &[x, weights, experts, gate, up, down])
    }
}
