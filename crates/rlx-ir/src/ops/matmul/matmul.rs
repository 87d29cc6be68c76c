//! `matmul`: the product of matrices, or of stacks of them.
//!
//! Shapes: `a[..., M, K] x b[..., K, N] -> [..., M, N]`; with `transpose_b` the second operand is `[..., N, K]`. Leading dims
//! broadcast. A weight is `[N, K]` with `transpose_b`, as models store it.
//! Dtypes: `a` is a float type, or `q8_f32` (a quantised activation). `b` is a float type, or a block type with
//! `transpose_b`, whose meaning is its decoded values. The result has the type of `a` where that is a float, else f32.
//! Numerics: products and sums in f64, rounded once.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{broadcast_positions, broadcast_shapes};
use crate::quant::BlockType;
use crate::types::{Shape, Type};

/// The product of matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatMul {
    /// Whether the second operand is `[..., N, K]`.
    pub transpose_b: bool,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "matmul", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(MatMul { transpose_b: reader.flag("transpose_b")? }))
}

impl MatMul {
    /// The type of the product of `a` and `b`.
    ///
    /// # Errors
    /// `InvalidArgument` where they do not fit.
    pub fn result_type(self, a: &Type, b: &Type) -> Result<Type> {
        let activation = a.dtype.is_float() || a.dtype == DType::Block(BlockType::Q8_F32);
        if !activation || a.rank() < 2 {
            return Err(operand_error(0, "a float (or q8_f32) of rank 2 or more", a));
        }
        let block_fits = b.dtype.is_block() && self.transpose_b;
        if !(b.dtype.is_float() || block_fits) || b.rank() < 2 {
            let expected = "a float, or a block type with transpose_b, of rank 2 or more";
            return Err(operand_error(1, expected, b));
        }
        let (a_dims, b_dims) = (a.shape.dims(), b.shape.dims());
        let (a_outer, [m, k]) = a_dims.split_at(a_dims.len() - 2) else {
            return Err(operand_error(0, "", a));
        };
        let (b_outer, [x, y]) = b_dims.split_at(b_dims.len() - 2) else {
            return Err(operand_error(1, "", b));
        };
        let (n, b_k) = if self.transpose_b { (x, y) } else { (y, x) };
        if b_k != k {
            return Err(operand_error(1, format!("a matrix with K = {k} to fit operand 0 ({a})"), b));
        }
        let dtype = if a.dtype.is_float() { a.dtype } else { DType::F32 };
        if a_outer.is_empty() && b_outer.is_empty() {
            return Ok(Type::new(dtype, [m.clone(), n.clone()]));
        }
        let outer = broadcast_shapes(&Shape::new(a_outer), &Shape::new(b_outer))?;
        let dims: Vec<_> = outer.dims().iter().chain([m, n]).cloned().collect();
        Ok(Type::new(dtype, dims))
    }
}

impl Op for MatMul {
    fn name(&self) -> &str {
        "matmul"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().flag("transpose_b", self.transpose_b)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 2..=2)?;
        Ok(vec![self.result_type(&operands[0], &operands[1])?])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (a, b) = (cx.operands[0], cx.operands[1]);
        let (a_rank, b_rank) = (a.shape().len(), b.shape().len());
        let (m, k) = (a.shape()[a_rank - 2], a.shape()[a_rank - 1]);
        let n = if self.transpose_b { b.shape()[b_rank - 2] } else { b.shape()[b_rank - 1] };
        let ty = &cx.results[0];
        let outer = &ty.shape[..ty.shape.len() - 2];
        let a_at = broadcast_positions(&a.shape()[..a_rank - 2], outer);
        let b_at = broadcast_positions(&b.shape()[..b_rank - 2], outer);
        let (a, b) = (a.to_f64()?, b.to_f64()?);
        let (mut values, mut abs) = (Vec::new(), Vec::new());
        for (&ai, &bi) in a_at.iter().zip(&b_at) {
            let (a, b) = (&a[ai * m * k..][..m * k], &b[bi * k * n..][..k * n]);
            for row in 0..m {
                for col in 0..n {
                    let term = |i: usize| {
                        a[row * k + i] * if self.transpose_b { b[col * k + i] } else { b[i * n + col] }
                    };
                    values.push((0..k).map(term).sum());
                    abs.push((0..k).map(|i| term(i).abs()).sum());
                }
            }
        }
        Ok(vec![Evaluated::computed(ty, values, abs, k)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        let k = operands[0].shape.last().cloned().unwrap_or(1.into());
        Cost::of_types(results[0].shape.elems() * k * 2.into(), operands, results)
    }
}

impl Builder {
    /// `a[..., M, K] x b[..., K, N]`.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn matmul(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit_one(MatMul { transpose_b: false }, &[a, b])
    }

    /// `a[..., M, K] x b[..., N, K]` with the second operand transposed.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn matmul_transposed(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit_one(MatMul { transpose_b: true }, &[a, b])
    }
}
