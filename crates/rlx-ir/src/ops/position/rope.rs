//! `rope`: rotary position embedding (Su et al. 2021).
//!
//! Shapes: `x[N, H, D], positions[N], inv_freq[F] -> [N, H, D]` with `2 F <= D`, both constants.
//! Dtypes: `x` is a float, which the result has; positions are i32; `inv_freq` is f32.
//! Numerics: the pair `(a, b)` of frequency `i` becomes `scale * (a cos t - b sin t, b cos t + a sin t)` with
//! `t = position * inv_freq[i]`, all in f64, rounded once. Pairs are `(i, i + F)` in style `half` and `(2i, 2i + 1)` in style
//! `interleaved`; elements from `2 F` on pass through unscaled. The tolerance counts an angle that is rounded to f32.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::Result;
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::composite::{cast_to, check_i32_len, scale_by, wide_dtype};
use crate::types::Type;

/// Which elements make a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RopeStyle {
    /// `i` and `i + F`, as in GPT-NeoX.
    #[default]
    Half,
    /// `2i` and `2i + 1`, as in the paper.
    Interleaved,
}

const STYLES: &[(&str, RopeStyle)] = &[("half", RopeStyle::Half), ("interleaved", RopeStyle::Interleaved)];

impl RopeStyle {
    /// The positions of pair `i` of `pairs` within a head.
    pub fn pair(self, i: usize, pairs: usize) -> (usize, usize) {
        match self {
            Self::Half => (i, i + pairs),
            Self::Interleaved => (2 * i, 2 * i + 1),
        }
    }

    /// The word in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Self::Half => "half",
            Self::Interleaved => "interleaved",
        }
    }
}

/// Rotary position embedding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// Which elements make a pair.
    pub style: RopeStyle,
    /// The factor of sine and cosine (the attention factor of scaled variants).
    pub scale: f64,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "rope", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let style = reader.choice("style", STYLES)?;
    Ok(Arc::new(Rope { style, scale: reader.opt_float("scale")?.unwrap_or(1.0) }))
}

impl Op for Rope {
    fn name(&self) -> &str {
        "rope"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        let attrs = Attrs::new().word("style", self.style.name());
        if self.scale == 1.0 { attrs } else { attrs.float("scale", self.scale) }
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 3..=3)?;
        let (x, inv_freq) = (&operands[0], &operands[2]);
        let head_dim = x.shape.last().and_then(Dim::as_usize);
        let (true, 3, Some(head_dim)) = (x.dtype.is_float(), x.rank(), head_dim) else {
            return Err(operand_error(0, "a float [N, H, D] with constant D", x));
        };
        check_i32_len(1, &operands[1], "a position for each token", &x.shape[0])?;
        let pairs = inv_freq.shape.last().and_then(Dim::as_usize);
        match (inv_freq.dtype, inv_freq.rank(), pairs) {
            (DType::F32, 1, Some(pairs)) if pairs.saturating_mul(2) <= head_dim => Ok(vec![x.clone()]),
            _ => Err(operand_error(2, format!("at most {} frequencies as f32", head_dim / 2), inv_freq)),
        }
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        let mut values = cx.operands[0].to_f64()?;
        let (positions, inv_freq) = (cx.operands[1].to_i64()?, cx.operands[2].to_f64()?);
        let (heads, head_dim) = (ty.shape[1], ty.shape[2]);
        let mut abs = vec![0.0; values.len()];
        for (token, &position) in positions.iter().enumerate() {
            for (i, &frequency) in inv_freq.iter().enumerate() {
                let angle = position as f64 * frequency;
                let (sin, cos) = (libm::sin(angle) * self.scale, libm::cos(angle) * self.scale);
                let (first, second) = self.style.pair(i, inv_freq.len());
                for head in 0..heads {
                    let at = (token * heads + head) * head_dim;
                    let (a, b) = (values[at + first], values[at + second]);
                    values[at + first] = a * cos - b * sin;
                    values[at + second] = b * cos + a * sin;
                    let terms = (a.abs() + b.abs()) * self.scale.abs() * (1.0 + angle.abs());
                    abs[at + first] = terms;
                    abs[at + second] = terms;
                }
            }
        }
        Ok(vec![Evaluated::computed(ty, values, abs, 1)?])
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(results[0].shape.elems() * 3.into(), operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let [x, positions, inv_freq] = [operands[0], operands[1], operands[2]];
        let (dtype, wide) = (b.ty(x).dtype, wide_dtype(b, &[x]));
        let (tokens, heads, head_dim) = (b.shape(x)[0].clone(), b.shape(x)[1].clone(), b.shape(x)[2].clone());
        let pairs = b.shape(inv_freq)[0].clone();
        let rotated = pairs.clone() * 2.into();
        let (zero, one, two) = (Dim::constant(0), Dim::constant(1), Dim::constant(2));

        let positions = b.cast(positions, wide)?;
        let positions = b.reshape(positions, [tokens.clone(), one.clone(), one.clone()])?;
        let inv_freq = cast_to(b, inv_freq, wide)?;
        let angle = b.mul(positions, inv_freq)?;
        let (sin, cos) = (b.sin(angle)?, b.cos(angle)?);
        let (sin, cos) = (scale_by(b, sin, self.scale)?, scale_by(b, cos, self.scale)?);

        let wide_x = cast_to(b, x, wide)?;
        let flat = [tokens.clone(), heads.clone(), pairs.clone()];
        let (first, second) = match self.style {
            RopeStyle::Half => {
                let first = b.slice(wide_x, 2, zero, pairs.clone())?;
                (first, b.slice(wide_x, 2, pairs.clone(), pairs.clone())?)
            }
            RopeStyle::Interleaved => {
                let part = b.slice(wide_x, 2, zero.clone(), rotated.clone())?;
                let split = b.reshape(part, [tokens.clone(), heads.clone(), pairs.clone(), two])?;
                let first = b.slice(split, 3, zero, one.clone())?;
                let second = b.slice(split, 3, one.clone(), one.clone())?;
                (b.reshape(first, flat.clone())?, b.reshape(second, flat)?)
            }
        };
        let (first_cos, second_sin) = (b.mul(first, cos)?, b.mul(second, sin)?);
        let (second_cos, first_sin) = (b.mul(second, cos)?, b.mul(first, sin)?);
        let first = b.sub(first_cos, second_sin)?;
        let second = b.add(second_cos, first_sin)?;
        let turned = match self.style {
            RopeStyle::Half => b.concat(&[first, second], 2)?,
            RopeStyle::Interleaved => {
                let column = [tokens.clone(), heads.clone(), pairs, one];
                let (first, second) = (b.reshape(first, column.clone())?, b.reshape(second, column)?);
                let joined = b.concat(&[first, second], 3)?;
                b.reshape(joined, [tokens, heads, rotated.clone()])?
            }
        };
        let turned = cast_to(b, turned, dtype)?;
        if rotated == head_dim {
            return Ok(Some(vec![turned]));
        }
        let rest = b.slice(x, 2, rotated.clone(), head_dim - rotated)?;
        Ok(Some(vec![b.concat(&[turned, rest], 2)?]))
    }
}

impl Builder {
    /// Rotary position embedding of `x[N, H, D]`.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn rope(
        &mut self,
        x: Value,
        positions: Value,
        inv_freq: Value,
        style: RopeStyle,
        scale: f64,
    ) -> Result<Value> {
        self.emit_one(Rope { style, scale }, &[x, positions, inv_freq])
    }
}
