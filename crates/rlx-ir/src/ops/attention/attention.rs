//! `attention`: scaled dot-product attention (Vaswani et al. 2017) within each sequence of the token axis.
//!
//! Shapes: `q[N, Hq, D], k[N, Hkv, D], v[N, Hkv, Dv], starts[R + 1][, mask[Hm, N, S]] -> [N, Hq, Dv]`. `Hkv` divides `Hq`: query
//! head `h` reads key head `h / (Hq / Hkv)`. `Hm` is 1 or `Hq`; the last axis of the mask is the key's position within
//! its sequence, and `S` is at least the longest sequence.
//! Dtypes: `q`, `k` and `v` are floats, each its own; the result has the dtype of `q`. Starts are i32. The mask operand is
//! bool for `custom` and a float for `bias`.
//! Numerics: scores, softmax and weighted mean in f64, rounded once; see [`scores`](super::scores). A query without a visible
//! key, and a token outside of every sequence, give zeros. A bias of minus infinity hides its key.

use std::sync::Arc;

use super::mask::Mask;
use super::scores::{Dense, Heads, Key, Scores, all_of, check_heads, column, eval_query, flops};
use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::ragged::{TokenPlaces, check_starts, sequences, token_places};
use crate::ops::reduce::reduce::KeepDims;
use crate::types::Type;

/// Attention within each sequence of the token axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Which keys a query sees.
    pub mask: Mask,
    /// The factor of `q . k`.
    pub scale: f64,
    /// The largest absolute score, approached smoothly; above 0.
    pub softcap: Option<f64>,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "attention", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let mask = Mask::read(reader)?;
    let Scores { scale, softcap } = Scores::read(reader)?;
    Ok(Arc::new(Attention { mask, scale, softcap }))
}

impl Attention {
    fn scores(self) -> Scores {
        Scores { scale: self.scale, softcap: self.softcap }
    }

    fn check(self, operands: &[Type]) -> Result<Heads> {
        let arity = 4 + usize::from(self.mask.has_operand());
        check_arity(operands, arity..=arity)?;
        self.mask.check()?;
        self.scores().check()?;
        let (q, k, v) = (&operands[0], &operands[1], &operands[2]);
        let heads = check_heads(q, k, v, 1, ["a float [N, Hkv, D]", "a float [N, Hkv, Dv]"])?;
        let tokens = &q.shape[0];
        if k.shape[0] != *tokens {
            return Err(operand_error(1, format!("a key for each of the {tokens} tokens"), k));
        }
        check_starts(3, &operands[3])?;
        if let Some(mask) = operands.get(4) {
            let fits = match self.mask {
                Mask::Custom => mask.dtype == DType::Bool,
                _ => mask.dtype.is_float(),
            };
            let shaped = mask.rank() == 3
                && (mask.shape[0] == heads.q_heads || mask.shape[0] == Dim::constant(1))
                && mask.shape[1] == *tokens;
            if !fits || !shaped {
                let kind = if self.mask == Mask::Custom { "bool" } else { "a float" };
                let expected = format!("{kind} [1 or {}, {tokens}, S]", heads.q_heads);
                return Err(operand_error(4, expected, mask));
            }
        }
        Ok(heads)
    }
}

impl Op for Attention {
    fn name(&self) -> &str {
        "attention"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        self.scores().write(self.mask.write(Attrs::new()))
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        let heads = self.check(operands)?;
        let q = &operands[0];
        Ok(vec![Type::new(q.dtype, [q.shape[0].clone(), heads.q_heads, heads.v_dim])])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let ty = &cx.results[0];
        let (tokens, q_heads, v_dim) = (ty.shape[0], ty.shape[1], ty.shape[2]);
        let (kv_heads, head_dim) = (cx.operands[1].shape()[1], cx.operands[1].shape()[2]);
        let [q, k, v] = [cx.operands[0].to_f64()?, cx.operands[1].to_f64()?, cx.operands[2].to_f64()?];
        let ranges = sequences(cx.operands[3], tokens)?;
        let longest = ranges.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
        let mask = match cx.operands.get(4) {
            None => None,
            Some(mask) => {
                let (heads, width) = (mask.shape()[0], mask.shape()[2]);
                if width < longest {
                    crate::bail!(
                        InvalidArgument,
                        "the mask has {width} keys, but a sequence has {longest} tokens"
                    );
                }
                Some((mask.to_f64()?, heads, width))
            }
        };
        // What the mask operand holds for a query, a head and a key of its sequence.
        let at = |head: usize, i: usize, key: usize| {
            mask.as_ref().map_or(0.0, |(m, heads, width)| m[((head % heads) * tokens + i) * width + key])
        };
        let mut place = vec![0..0; tokens];
        for range in &ranges {
            place[range.clone()].fill(range.clone());
        }
        let (mut values, mut abs) = (Vec::new(), Vec::new());
        for (i, range) in place.iter().enumerate() {
            for head in 0..q_heads {
                let kv_head = head / (q_heads / kv_heads);
                let keys = range.clone().enumerate().filter_map(|(j, token)| {
                    let (i_pos, j_pos) = ((i - range.start) as i64, j as i64);
                    let custom = self.mask != Mask::Custom || at(head, i, j) != 0.0;
                    if !self.mask.sees(i_pos, j_pos) || !custom {
                        return None;
                    }
                    let row = token * kv_heads + kv_head;
                    let bias = if self.mask == Mask::Bias { at(head, i, j) } else { 0.0 };
                    Some(Key { k: &k[row * head_dim..][..head_dim], v: &v[row * v_dim..][..v_dim], bias })
                });
                let q = &q[(i * q_heads + head) * head_dim..][..head_dim];
                eval_query(self.scores(), q, keys, v_dim, &mut values, &mut abs);
            }
        }
        Ok(vec![Evaluated::computed(ty, values, abs, longest.max(head_dim))?])
    }

    /// An upper estimate: as if all tokens were one sequence and saw each other.
    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        let tokens = &operands[0].shape[0];
        let flops =
            self.check(operands).map_or(Dim::constant(0), |h| flops(&operands[0], &h, tokens, tokens));
        Cost::of_types(flops, operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let [q, k, v, starts] = [operands[0], operands[1], operands[2], operands[3]];
        let tokens = b.shape(q)[0].clone();
        let places = token_places(b, starts, &tokens)?;
        let sequence = column(b, places.sequence)?;
        let same = b.eq(sequence, places.sequence)?;
        let zero = b.scalar(DType::I32, 0.0)?;
        let inside = b.ge(sequence, zero)?;
        let same = b.and(same, inside)?;
        // Within a sequence, positions and token indices differ by a constant.
        let query = column(b, places.token)?;
        let by_position = self.mask.emit(b, query, places.token)?;
        let mut visible = all_of(b, same, [by_position])?;
        let mut bias = None;
        if let Some(&mask) = operands.get(4) {
            let dense = dense_mask(b, mask, &places, same)?;
            match self.mask {
                Mask::Custom => visible = b.and(visible, dense)?,
                _ => bias = Some(dense),
            }
        }
        Ok(Some(vec![Dense { q, k, v, visible, bias }.emit(b, self.scores())?]))
    }
}

/// Emits the mask operand `[Hm, N, S]` over all pairs of tokens, `[Hm, N, N]`; pairs that `same` excludes hold anything.
fn dense_mask(b: &mut Builder, mask: Value, places: &TokenPlaces, same: Value) -> Result<Value> {
    let [heads, tokens, width] = [0, 1, 2].map(|i| b.shape(mask)[i].clone());
    let flat_len = tokens.clone() * width.clone();
    let zero = b.scalar(DType::I32, 0.0)?;
    // A query's position is the number of tokens of its sequence that come before it.
    let query = column(b, places.token)?;
    let before = b.lt(places.token, query)?;
    let before = b.and(before, same)?;
    let before = b.cast(before, DType::I32)?;
    let position = b.reduce_sum(before, &[1], KeepDims::Yes)?;
    let first = b.sub(query, position)?;
    let key = b.sub(places.token, first)?;
    // Where row `i` of the mask begins: a symbolic size as a value.
    let row = b.iota([flat_len.clone()], 0, DType::I32)?;
    let row = b.reshape(row, [tokens, width])?;
    let row = b.slice(row, 1, Dim::constant(0), Dim::constant(1))?;
    let at = b.add(row, key)?;
    let at = b.select(same, at, zero)?;
    let flat = b.reshape(mask, [heads, flat_len])?;
    b.gather(flat, at, 1)
}

impl Builder {
    /// Attention within each sequence; `mask` is the operand of the mask kinds `custom` and `bias`.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn attention(
        &mut self,
        q: Value,
        k: Value,
        v: Value,
        starts: Value,
        mask: Option<Value>,
        attention: Attention,
    ) -> Result<Value> {
        let operands: Vec<Value> = [q, k, v, starts].into_iter().chain(mask).collect();
        self.emit_one(attention, &operands)
    }
}
