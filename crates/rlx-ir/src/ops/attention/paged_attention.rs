//! `paged_attention`: attention of new tokens over keys and values that lie in pages of state.
//!
//! Shapes: `q[N, Hq, D], k_state[P, page_len, Hkv, D], v_state[P, page_len, Hkv, Dv], starts[R + 1], lengths[R], table[R, T] ->
//! [N, Hq, Dv]`. The key at position `p` of sequence `r` lies in page `table[r, p / page_len]`, slot `p % page_len`. Of `n` new
//! tokens of a sequence, number `i` is at position `lengths[r] - n + i`: its own keys are in the state already.
//! Dtypes: `q` and the states are floats, each its own; the result has the dtype of `q`. Starts, lengths and table are i32.
//! Numerics: as `attention`, on the values as the state holds them. A token outside of every sequence gives zeros. Table
//! entries beyond a sequence's length are not read, nor are slots beyond it.

use std::sync::Arc;

use super::mask::Mask;
use super::scores::{Dense, Heads, Key, Scores, all_of, check_heads, column, eval_query, flops};
use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::composite::check_i32_len;
use crate::ops::ragged::{check_starts, sequences, token_places};
use crate::ops::reduce::reduce::KeepDims;
use crate::types::Type;

/// Attention of new tokens over paged state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagedAttention {
    /// Which keys a query sees: any kind without an operand.
    pub mask: Mask,
    /// The factor of `q . k`.
    pub scale: f64,
    /// The largest absolute score, approached smoothly; above 0.
    pub softcap: Option<f64>,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "paged_attention", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let mask = Mask::read(reader)?;
    let Scores { scale, softcap } = Scores::read(reader)?;
    Ok(Arc::new(PagedAttention { mask, scale, softcap }))
}

impl PagedAttention {
    fn scores(self) -> Scores {
        Scores { scale: self.scale, softcap: self.softcap }
    }

    fn check(self, operands: &[Type]) -> Result<Heads> {
        check_arity(operands, 6..=6)?;
        self.mask.check()?;
        self.scores().check()?;
        if self.mask.has_operand() {
            crate::bail!(
                InvalidArgument,
                "mask {} needs an operand that this op does not have",
                self.mask.name()
            );
        }
        let expected = ["a float [P, page_len, Hkv, D]", "a float [P, page_len, Hkv, Dv]"];
        let heads = check_heads(&operands[0], &operands[1], &operands[2], 2, expected)?;
        if operands[1].shape[1].as_usize().is_none_or(|len| len == 0) {
            return Err(operand_error(1, "a constant page length of at least 1", &operands[1]));
        }
        let sequences = check_starts(3, &operands[3])?;
        check_i32_len(4, &operands[4], "a length for each sequence", &sequences)?;
        let table = &operands[5];
        if table.dtype != DType::I32 || table.rank() != 2 || table.shape[0] != sequences {
            return Err(operand_error(5, format!("pages of each sequence: i32[{sequences}, T]"), table));
        }
        Ok(heads)
    }
}

impl Op for PagedAttention {
    fn name(&self) -> &str {
        "paged_attention"
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
        let state = cx.operands[1].shape();
        let (pages, page_len, kv_heads, head_dim) = (state[0], state[1], state[2], state[3]);
        let [q, k, v] = [cx.operands[0].to_f64()?, cx.operands[1].to_f64()?, cx.operands[2].to_f64()?];
        let (lengths, table) = (cx.operands[4].to_i64()?, cx.operands[5].to_i64()?);
        let pages_each = cx.operands[5].shape()[1];
        let mut values = vec![0.0; tokens * q_heads * v_dim];
        let mut abs = values.clone();
        let mut longest = head_dim;
        for (r, range) in sequences(cx.operands[3], tokens)?.into_iter().enumerate() {
            let capacity = pages_each * page_len;
            let length = usize::try_from(lengths[r]).ok().filter(|l| (range.len()..=capacity).contains(l));
            let Some(length) = length else {
                crate::bail!(
                    InvalidArgument,
                    "lengths[{r}] is {}, but {} tokens are new and {pages_each} pages hold {capacity}",
                    lengths[r],
                    range.len()
                );
            };
            longest = longest.max(length);
            // The slot of each position.
            let mut slots = Vec::with_capacity(length);
            for p in 0..length {
                let page = table[r * pages_each + p / page_len];
                let Some(page) = usize::try_from(page).ok().filter(|page| *page < pages) else {
                    crate::bail!(
                        InvalidArgument,
                        "table[{r}, {}] is {page}, but there are {pages} pages",
                        p / page_len
                    );
                };
                slots.push(page * page_len + p % page_len);
            }
            for (i, token) in range.clone().enumerate() {
                let position = (length - range.len() + i) as i64;
                for head in 0..q_heads {
                    let kv_head = head / (q_heads / kv_heads);
                    let seen = slots.iter().enumerate().filter(|(p, _)| self.mask.sees(position, *p as i64));
                    let keys = seen.map(|(_, slot)| {
                        let row = slot * kv_heads + kv_head;
                        Key { k: &k[row * head_dim..][..head_dim], v: &v[row * v_dim..][..v_dim], bias: 0.0 }
                    });
                    let at = token * q_heads + head;
                    let q = &q[at * head_dim..][..head_dim];
                    let (mut value, mut terms) = (Vec::new(), Vec::new());
                    eval_query(self.scores(), q, keys, v_dim, &mut value, &mut terms);
                    values[at * v_dim..][..v_dim].copy_from_slice(&value);
                    abs[at * v_dim..][..v_dim].copy_from_slice(&terms);
                }
            }
        }
        Ok(vec![Evaluated::computed(ty, values, abs, longest)?])
    }

    /// An upper estimate: as if the sequences filled all their pages. Pages in the table are read, not the whole state.
    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        let (q, k, v, table) = (&operands[0], &operands[1], &operands[2], &operands[5]);
        let keys = table.shape[1].clone() * k.shape[1].clone();
        let flops = self.check(operands).map_or(Dim::constant(0), |h| flops(q, &h, &q.shape[0], &keys));
        let read = |state: &Type| {
            let rows = table.shape[0].clone() * keys.clone();
            Type::new(state.dtype, [rows, state.shape[2].clone(), state.shape[3].clone()])
        };
        let mut moved = operands.to_vec();
        (moved[1], moved[2]) = (read(k), read(v));
        Cost::of_types(flops, &moved, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let [q, k, v, starts, lengths, table] =
            [operands[0], operands[1], operands[2], operands[3], operands[4], operands[5]];
        let tokens = b.shape(q)[0].clone();
        let (sequences, pages_each) = (b.shape(table)[0].clone(), b.shape(table)[1].clone());
        let page_len = b.shape(k)[1].clone();
        let capacity = pages_each.clone() * page_len.clone();
        let rows = sequences.clone() * capacity.clone();
        let one = Dim::constant(1);
        let zero = b.scalar(DType::I32, 0.0)?;

        // Pages that no key lies in may be named by anything.
        let page = b.iota([one.clone(), pages_each.clone()], 1, DType::I32)?;
        let page_size = b.scalar(DType::I32, page_len.as_const().unwrap_or(1) as f64)?;
        let page_start = b.mul(page, page_size)?;
        let length_column = column(b, lengths)?;
        let used = b.lt(page_start, length_column)?;
        let table = b.select(used, table, zero)?;
        let gathered = |b: &mut Builder, state: Value| {
            let (heads, dim) = (b.shape(state)[2].clone(), b.shape(state)[3].clone());
            let keys = b.gather(state, table, 0)?;
            b.reshape(keys, [rows.clone(), heads, dim])
        };
        let (k, v) = (gathered(b, k)?, gathered(b, v)?);

        // Position and sequence of each gathered key; -2 belongs to no token.
        let grid = [sequences.clone(), capacity];
        let key_position = b.iota(grid.clone(), 1, DType::I32)?;
        let key_sequence = b.iota(grid, 0, DType::I32)?;
        let held = b.lt(key_position, length_column)?;
        let nowhere = b.scalar(DType::I32, -2.0)?;
        let key_sequence = b.select(held, key_sequence, nowhere)?;
        let key_position = b.reshape(key_position, [rows.clone()])?;
        let key_sequence = b.reshape(key_sequence, [rows])?;

        // Token t of sequence r is at lengths[r] - (end[r] - t): picked by a sum over the one sequence that matches.
        let places = token_places(b, starts, &tokens)?;
        let sequence = column(b, places.sequence)?;
        let order = b.iota([one, sequences], 1, DType::I32)?;
        let own = b.eq(sequence, order)?;
        let shift = b.sub(lengths, places.end)?;
        let shift = b.select(own, shift, zero)?;
        let shift = b.reduce_sum(shift, &[1], KeepDims::Yes)?;
        let token = column(b, places.token)?;
        let position = b.add(token, shift)?;

        let same = b.eq(sequence, key_sequence)?;
        let by_position = self.mask.emit(b, position, key_position)?;
        let visible = all_of(b, same, [by_position])?;
        Ok(Some(vec![Dense { q, k, v, visible, bias: None }.emit(b, self.scores())?]))
    }
}

impl Builder {
    /// Attention of new tokens over the keys and values in pages.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit.
    pub fn paged_attention(
        &mut self,
        q: Value,
        k_state: Value,
        v_state: Value,
        starts: Value,
        lengths: Value,
        table: Value,
        attention: PagedAttention,
    ) -> Result<Value> {
        self.emit_one(attention, &[q, k_state, v_state, starts, lengths, table])
    }
}
