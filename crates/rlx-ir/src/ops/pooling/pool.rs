//! `pool`: one vector for each sequence of the token axis.
//!
//! Shapes: `x[N, H], starts[R + 1] -> [R, H]`.
//! Dtypes: `x` is a float, which the result has; starts are i32.
//! Numerics: mean and maximum over the tokens of a sequence in f64, rounded once; `cls` is its first token and `last` its
//! last, unchanged. The maximum is NaN where a token is. An empty sequence gives zeros.

use std::ops::Range;
use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::composite::{cast_to, wide_dtype};
use crate::ops::elementwise::binary::BinaryKind;
use crate::ops::index::scatter::ScatterMode;
use crate::ops::ragged::{check_starts, sequences, token_places};
use crate::ops::reduce::reduce::KeepDims;
use crate::tensor::Tensor;
use crate::types::{TensorType, Type};

/// Which vector stands for a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PoolMode {
    /// The mean of its tokens.
    Mean,
    /// Its first token.
    Cls,
    /// Its last token.
    Last,
    /// The maximum of its tokens, element by element.
    Max,
}

impl PoolMode {
    /// Every mode with its word in the text form.
    pub const WORDS: &[(&str, Self)] =
        &[("mean", Self::Mean), ("cls", Self::Cls), ("last", Self::Last), ("max", Self::Max)];

    /// The word in the text form.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, m)| *m == self).map_or("mean", |(w, _)| w)
    }
}

/// One vector for each sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    /// Which vector stands for a sequence.
    pub mode: PoolMode,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "pool", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(Pool { mode: reader.choice("mode", PoolMode::WORDS)? }))
}

impl Pool {
    /// The value and its absolute terms at one column of one sequence that is not empty.
    fn column(self, tokens: Range<usize>, at: impl Fn(usize) -> f64) -> (f64, f64) {
        let n = tokens.len() as f64;
        match self.mode {
            PoolMode::Mean => {
                let (sum, abs) = tokens.map(at).fold((0.0, 0.0), |(s, a), v| (s + v, a + v.abs()));
                (sum / n, abs / n)
            }
            PoolMode::Cls => (at(tokens.start), 0.0),
            PoolMode::Last => (at(tokens.end - 1), 0.0),
            PoolMode::Max => {
                (tokens.map(at).fold(f64::NEG_INFINITY, |m, v| BinaryKind::Max.apply(m, v)), 0.0)
            }
        }
    }
}

impl Op for Pool {
    fn name(&self) -> &str {
        "pool"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().word("mode", self.mode.name())
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 2..=2)?;
        let x = &operands[0];
        if !x.dtype.is_float() || x.rank() != 2 {
            return Err(operand_error(0, "a float [N, H]", x));
        }
        let sequences = check_starts(1, &operands[1])?;
        Ok(vec![Type::new(x.dtype, [sequences, x.shape[1].clone()])])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (tokens, width) = (cx.operands[0].shape()[0], cx.operands[0].shape()[1]);
        let x = cx.operands[0].to_f64()?;
        let (mut values, mut abs, mut longest) = (Vec::new(), Vec::new(), 1);
        for range in sequences(cx.operands[1], tokens)? {
            longest = longest.max(range.len());
            for column in 0..width {
                let (v, a) = match range.is_empty() {
                    true => (0.0, 0.0),
                    false => self.column(range.clone(), |t| x[t * width + column]),
                };
                values.push(v);
                abs.push(a);
            }
        }
        Ok(vec![Evaluated::computed(&cx.results[0], values, abs, longest)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        let reads_all = matches!(self.mode, PoolMode::Mean | PoolMode::Max);
        let read = if reads_all { &operands[0] } else { &results[0] };
        let flops = if reads_all { operands[0].shape.elems() } else { Dim::constant(0) };
        Cost::of_types(flops, &[read.clone(), operands[1].clone()], results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let (x, starts) = (operands[0], operands[1]);
        let (dtype, wide) = (b.ty(x).dtype, wide_dtype(b, &[x]));
        let (tokens, width) = (b.shape(x)[0].clone(), b.shape(x)[1].clone());
        let places = token_places(b, starts, &tokens)?;
        let sequences = b.shape(places.first)[0].clone();
        let one = Dim::constant(1);
        let nothing = |b: &mut Builder, dtype: DType| -> Result<Value> {
            let zero = Tensor::zeros(TensorType::new(dtype, [1, 1]))?;
            let zero = b.constant(zero);
            b.broadcast(zero, [sequences.clone(), width.clone()])
        };
        // The tokens of one sequence never meet another's values: a NaN stays where it is.
        let y = match self.mode {
            PoolMode::Mean => {
                let x = cast_to(b, x, wide)?;
                let nothing = nothing(b, wide)?;
                let sum = b.scatter(nothing, places.sequence, x, 0, ScatterMode::Add)?;
                let len = b.sub(places.end, places.first)?;
                let least = b.scalar(DType::I32, 1.0)?;
                let len = b.max(len, least)?;
                let len = b.cast(len, wide)?;
                let len = b.reshape(len, [sequences.clone(), one])?;
                let mean = b.div(sum, len)?;
                cast_to(b, mean, dtype)?
            }
            PoolMode::Cls | PoolMode::Last => {
                // Each sequence writes the row of one of its tokens; all other tokens are skipped.
                let marks = if self.mode == PoolMode::Cls {
                    places.first
                } else {
                    let step = b.scalar(DType::I32, 1.0)?;
                    b.sub(places.end, step)?
                };
                let column = b.reshape(places.token, [tokens.clone(), one])?;
                let hits = b.eq(column, marks)?;
                let hits = b.cast(hits, DType::I32)?;
                let hits = b.reduce_max(hits, &[1], KeepDims::No)?;
                let zero = b.scalar(DType::I32, 0.0)?;
                let chosen = b.gt(hits, zero)?;
                let skip = b.scalar(DType::I32, -1.0)?;
                let rows = b.select(chosen, places.sequence, skip)?;
                let nothing = nothing(b, dtype)?;
                b.scatter(nothing, rows, x, 0, ScatterMode::Set)?
            }
            PoolMode::Max => {
                let order = b.iota([sequences.clone(), one.clone(), one.clone()], 0, DType::I32)?;
                let sequence = b.reshape(places.sequence, [one.clone(), tokens, one.clone()])?;
                let own = b.eq(order, sequence)?;
                let lowest = b.scalar(dtype, f64::NEG_INFINITY)?;
                let seen = b.select(own, x, lowest)?;
                let max = b.reduce_max(seen, &[1], KeepDims::No)?;
                let filled = b.gt(places.end, places.first)?;
                let filled = b.reshape(filled, [sequences.clone(), one])?;
                let zero = b.scalar(dtype, 0.0)?;
                b.select(filled, max, zero)?
            }
        };
        Ok(Some(vec![y]))
    }
}

impl Builder {
    /// One vector for each sequence of `x[N, H]`.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn pool(&mut self, x: Value, starts: Value, mode: PoolMode) -> Result<Value> {
        self.emit_one(Pool { mode }, &[x, starts])
    }
}
