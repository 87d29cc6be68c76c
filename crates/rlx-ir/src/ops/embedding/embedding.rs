//! `embedding`: rows of a table, by id.
//!
//! Shapes: `table[V, H], ids[...] -> [..., H]`.
//! Dtypes: the table is a float or block type, whose meaning is its decoded values; ids are i32, i64 or u32. The result has
//! the float type `dtype`.
//! Numerics: the decoded value times `scale` in f64, rounded once. An id outside of the table is an error.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::composite::{cast_to, scale_by};
use crate::tensor::Tensor;
use crate::types::{TensorType, Type};

/// Rows of a table, by id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Embedding {
    /// The factor of the values.
    pub scale: f64,
    /// The dtype of the result.
    pub dtype: DType,
}

impl Default for Embedding {
    fn default() -> Self {
        Self { scale: 1.0, dtype: DType::F32 }
    }
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "embedding", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let scale = reader.opt_float("scale")?.unwrap_or(1.0);
    let dtype = reader.opt_dtype("dtype")?.unwrap_or(DType::F32);
    if !dtype.is_float() {
        crate::bail!(InvalidArgument, "embedding: dtype must be a float type, got {dtype}");
    }
    Ok(Arc::new(Embedding { scale, dtype }))
}

impl Op for Embedding {
    fn name(&self) -> &str {
        "embedding"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        let attrs = if self.scale == 1.0 { Attrs::new() } else { Attrs::new().float("scale", self.scale) };
        attrs.dtype("dtype", self.dtype)
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 2..=2)?;
        let (table, ids) = (&operands[0], &operands[1]);
        if !(table.dtype.is_float() || table.dtype.is_block()) || table.rank() != 2 {
            return Err(operand_error(0, "a table [V, H] of a float or block type", table));
        }
        if !matches!(ids.dtype, DType::I32 | DType::I64 | DType::U32) {
            return Err(operand_error(1, "ids as i32, i64 or u32", ids));
        }
        if !self.dtype.is_float() {
            crate::bail!(InvalidArgument, "dtype must be a float type, got {}", self.dtype);
        }
        let dims: Vec<Dim> = ids.shape.dims().iter().chain(table.shape.last()).cloned().collect();
        Ok(vec![Type::new(self.dtype, dims)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (table, ids) = (cx.operands[0], cx.operands[1].to_i64()?);
        let (rows, width) = (table.shape()[0], table.shape()[1]);
        // Only the rows that are asked for are decoded: tables are large.
        let row_bytes = TensorType::new(table.dtype(), [width]).bytes()?;
        let mut values = Vec::with_capacity(ids.len() * width);
        for &id in &ids {
            let Some(row) = usize::try_from(id).ok().filter(|r| *r < rows) else {
                crate::bail!(InvalidArgument, "id {id} is outside of the table of {rows} rows");
            };
            let bytes = table.bytes()[row * row_bytes..][..row_bytes].to_vec();
            let row = Tensor::from_bytes(TensorType::new(table.dtype(), [width]), bytes)?;
            values.extend(row.to_f64()?.into_iter().map(|v| v * self.scale));
        }
        Ok(vec![Evaluated::elementwise(&cx.results[0], values)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        let elems = results[0].shape.elems();
        // Rows that are looked up are read, not the table.
        let rows = Type::new(operands[0].dtype, results[0].shape.clone());
        let scaled = if self.scale == 1.0 { Dim::constant(0) } else { elems };
        Cost::of_types(scaled, &[rows, operands[1].clone()], results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let rows = b.gather(operands[0], operands[1], 0)?;
        if self.scale == 1.0 {
            return Ok(Some(vec![cast_to(b, rows, self.dtype)?]));
        }
        let f64s = self.dtype == DType::F64 || b.ty(rows).dtype == DType::F64;
        let wide = cast_to(b, rows, if f64s { DType::F64 } else { DType::F32 })?;
        let scaled = scale_by(b, wide, self.scale)?;
        Ok(Some(vec![cast_to(b, scaled, self.dtype)?]))
    }
}

impl Builder {
    /// Rows of `table`, by id.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn embedding(&mut self, table: Value, ids: Value, embedding: Embedding) -> Result<Value> {
        self.emit_one(embedding, &[table, ids])
    }
}
