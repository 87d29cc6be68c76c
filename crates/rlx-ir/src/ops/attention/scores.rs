//! From queries, keys and values to attention's result, for one query or, in core ops, for all.
//!
//! The score of a key is `scale * q . k`, then `softcap * tanh(score / softcap)`, then the bias is added. The result is the
//! mean of the values, weighted by the softmax of the scores; without a visible key (or with every score at minus
//! infinity) it is zero.

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::error::{Error, Result};
use crate::op::operand_error;
use crate::ops::composite::{cast_to, scale_by, wide_dtype};
use crate::ops::norm::softmax::{emit_softmax, softmax_row};
use crate::types::Type;

/// How scores are made of products.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores {
    /// The factor of `q . k`.
    pub scale: f64,
    /// The largest absolute score, approached smoothly; above 0.
    pub softcap: Option<f64>,
}

impl Scores {
    pub(super) fn write(self, attrs: Attrs) -> Attrs {
        let attrs = attrs.float("scale", self.scale);
        match self.softcap {
            Some(cap) => attrs.float("softcap", cap),
            None => attrs,
        }
    }

    pub(super) fn read(reader: &mut AttrReader<'_>) -> Result<Self> {
        Ok(Self { scale: reader.float("scale")?, softcap: reader.opt_float("softcap")? })
    }

    pub(super) fn check(self) -> Result<()> {
        if !self.scale.is_finite() {
            crate::bail!(InvalidArgument, "scale must be finite, got {}", self.scale);
        }
        match self.softcap {
            Some(cap) if !(cap.is_finite() && cap > 0.0) => {
                crate::bail!(InvalidArgument, "softcap must be finite and above 0, got {cap}")
            }
            _ => Ok(()),
        }
    }

    /// The score of one key, and its absolute terms.
    fn of(self, q: &[f64], k: &[f64]) -> (f64, f64) {
        let products = q.iter().zip(k).map(|(a, b)| a * b);
        let (sum, abs) = products.fold((0.0, 0.0), |(s, a), p| (s + p, a + p.abs()));
        let (score, terms) = (sum * self.scale, abs * self.scale.abs());
        match self.softcap {
            // The slope of tanh is at most 1.
            Some(cap) => (cap * libm::tanh(score / cap), terms + score.abs().min(cap)),
            None => (score, terms),
        }
    }
}

/// A key that a query sees.
pub(super) struct Key<'a> {
    pub(super) k: &'a [f64],
    pub(super) v: &'a [f64],
    /// What is added to the score.
    pub(super) bias: f64,
}

/// Adds the result for the query `q` to `values`, and its absolute terms to `abs`; `v_dim` elements each.
pub(super) fn eval_query<'a>(
    scores: Scores,
    q: &[f64],
    keys: impl Iterator<Item = Key<'a>>,
    v_dim: usize,
    values: &mut Vec<f64>,
    abs: &mut Vec<f64>,
) {
    // A bias of minus infinity hides its key, whatever key and value hold.
    let keys: Vec<Key<'_>> = keys.filter(|key| key.bias != f64::NEG_INFINITY).collect();
    let (mut weights, mut terms): (Vec<f64>, Vec<f64>) = keys
        .iter()
        .map(|key| {
            let (score, terms) = scores.of(q, key.k);
            (score + key.bias, terms + key.bias.abs())
        })
        .unzip();
    softmax_row(&mut weights, &mut terms);
    let at = values.len();
    values.resize(at + v_dim, 0.0);
    abs.resize(at + v_dim, 0.0);
    for ((key, weight), term) in keys.iter().zip(&weights).zip(&terms) {
        for (d, v) in key.v.iter().enumerate() {
            values[at + d] += weight * v;
            abs[at + d] += term * v.abs();
        }
    }
}

/// Heads and sizes of attention's operands.
#[derive(Debug)]
pub(super) struct Heads {
    pub(super) q_heads: Dim,
    pub(super) v_dim: Dim,
}

/// Checks queries `[N, Hq, D]`, keys `[.., Hkv, D]` and values `[.., Hkv, Dv]`, where `lead` dims come before the heads of keys
/// and values.
pub(super) fn check_heads(q: &Type, k: &Type, v: &Type, lead: usize, expected: [&str; 2]) -> Result<Heads> {
    if !q.dtype.is_float() || q.rank() != 3 {
        return Err(operand_error(0, "a float [N, Hq, D]", q));
    }
    let (q_heads, head_dim) = (q.shape[1].clone(), q.shape[2].clone());
    if !k.dtype.is_float() || k.rank() != lead + 2 || k.shape[lead + 1] != head_dim {
        return Err(operand_error(1, format!("{} with D = {head_dim}", expected[0]), k));
    }
    let kv_heads = k.shape[lead].clone();
    let grouped = match (q_heads.as_usize(), kv_heads.as_usize()) {
        (Some(q), Some(kv)) => kv > 0 && q.is_multiple_of(kv),
        _ => false,
    };
    if !grouped {
        let expected = format!("a constant number of heads that divides the {q_heads} query heads");
        return Err(operand_error(1, expected, k));
    }
    let same_lead = v.rank() == lead + 2 && v.shape.dims()[..=lead] == k.shape.dims()[..=lead];
    if !v.dtype.is_float() || !same_lead {
        return Err(operand_error(2, format!("{}, aligned with the keys {k}", expected[1]), v));
    }
    Ok(Heads { q_heads, v_dim: v.shape[lead + 1].clone() })
}

/// Flops of attention where each of `queries` meets `keys` keys: products with keys and values, and the softmax.
pub(super) fn flops(q: &Type, heads: &Heads, queries: &Dim, keys: &Dim) -> Dim {
    let per_key = (q.shape[2].clone() + heads.v_dim.clone()) * 2.into() + 6.into();
    queries.clone() * keys.clone() * heads.q_heads.clone() * per_key
}

/// Queries `[N, Hq, D]`, keys `[M, Hkv, D]` and values `[M, Hkv, Dv]` that are all compared with each other.
pub(super) struct Dense {
    pub(super) q: Value,
    pub(super) k: Value,
    pub(super) v: Value,
    /// Which keys count: bool, broadcasts to `[Hq, N, M]`.
    pub(super) visible: Value,
    /// What is added to the scores: broadcasts to `[Hq, N, M]`.
    pub(super) bias: Option<Value>,
}

impl Dense {
    /// Emits the result `[N, Hq, Dv]`.
    ///
    /// What a query does not see cannot reach its result: scores are selected before the softmax, and a value that is not
    /// finite counts as zero there, and is added afterwards for those queries that see it: a product with a weight of 0 would
    /// be NaN for the others.
    pub(super) fn emit(self, b: &mut Builder, scores: Scores) -> Result<Value> {
        let dtype = b.ty(self.q).dtype;
        let wide = wide_dtype(b, &[self.q, self.k, self.v]);
        let [tokens, q_heads, head_dim] = [0, 1, 2].map(|i| b.shape(self.q)[i].clone());
        let [keys, kv_heads, v_dim] = [0, 1, 2].map(|i| b.shape(self.v)[i].clone());
        let group_rows = q_heads.floor_div(&kv_heads) * tokens.clone();
        let grouped = |last: &Dim| [kv_heads.clone(), group_rows.clone(), last.clone()];
        let by_head = |last: &Dim| [q_heads.clone(), tokens.clone(), last.clone()];

        let q = cast_to(b, self.q, wide)?;
        let q = b.transpose(q, [1, 0, 2])?;
        let q = b.reshape(q, grouped(&head_dim))?;
        let k = cast_to(b, self.k, wide)?;
        let k = b.transpose(k, [1, 0, 2])?;
        let products = b.matmul_transposed(q, k)?;
        let mut s = scale_by(b, products, scores.scale)?;
        if let Some(cap) = scores.softcap {
            let cap = b.scalar(wide, cap)?;
            let ratio = b.div(s, cap)?;
            let bent = b.tanh(ratio)?;
            s = b.mul(bent, cap)?;
        }
        let mut s = b.reshape(s, by_head(&keys))?;
        let mut visible = self.visible;
        if let Some(bias) = self.bias {
            let bias = cast_to(b, bias, wide)?;
            s = b.add(s, bias)?;
            let hidden = b.scalar(wide, f64::NEG_INFINITY)?;
            let shown = b.ne(bias, hidden)?;
            visible = b.and(visible, shown)?;
        }
        let weights = emit_softmax(b, s, 2, Some(visible))?;
        let weights = b.reshape(weights, grouped(&keys))?;

        let v = cast_to(b, self.v, wide)?;
        let v = b.transpose(v, [1, 0, 2])?;
        let (infinity, lowest) = (b.scalar(wide, f64::INFINITY)?, b.scalar(wide, f64::NEG_INFINITY)?);
        let (below, above) = (b.lt(v, infinity)?, b.gt(v, lowest)?);
        let finite = b.and(below, above)?;
        let zero = b.scalar(wide, 0.0)?;
        let finite_v = b.select(finite, v, zero)?;
        let mut y = b.matmul(weights, finite_v)?;

        let seen = b.cast(visible, wide)?;
        let seen = b.broadcast(seen, by_head(&keys))?;
        let seen = b.reshape(seen, grouped(&keys))?;
        // A visible value that is infinite makes the sum so; NaN counts as infinite on both sides, which gives NaN.
        for (inside, limit) in [(below, infinity), (above, lowest)] {
            let beyond = b.logical_not(inside)?;
            let beyond = b.cast(beyond, wide)?;
            let count = b.matmul(seen, beyond)?;
            let reached = b.gt(count, zero)?;
            let part = b.select(reached, limit, zero)?;
            y = b.add(y, part)?;
        }

        let y = b.reshape(y, by_head(&v_dim))?;
        let y = b.transpose(y, [1, 0, 2])?;
        cast_to(b, y, dtype)
    }
}

/// The logical and of `first` and all of `more` that are there.
pub(super) fn all_of(
    b: &mut Builder,
    first: Value,
    more: impl IntoIterator<Item = Option<Value>>,
) -> Result<Value> {
    more.into_iter().flatten().try_fold(first, |sum, next| b.and(sum, next))
}

/// `x`, an i32 vector, as `[len, 1]`, for comparing with a row.
pub(super) fn column(b: &mut Builder, x: Value) -> Result<Value> {
    let len = b.shape(x)[0].clone();
    b.reshape(x, [len, Dim::constant(1)])
}
