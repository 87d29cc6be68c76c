//! Attention: `softmax(softcap(scale · q kᵀ) + mask) v` for each head and sequence.
//!
//! - [`ragged`]: queries and keys of sequences that lie one after the other;
//! - [`paged`]: queries against keys and values in pages of a state.
//!
//! **Order of sums.** Keys are taken in blocks of 64, aligned to the key's position in its sequence, with a running
//! maximum and a running sum. A query's result depends on its own visible keys only: it has the same bits in a prefill
//! of many rows and as a single step, in every batch and with every thread count; what an invisible key holds (NaN
//! too) never matters. A query without a visible key gives zeros.

mod block;
mod mask;
#[cfg(test)]
mod tests;

use std::ops::Range;

use rlx_ir::bail;

pub use mask::{Mask, MaskTable};

use super::Cpu;
use super::matmul::Element;
use crate::error::{Error, Result};
use crate::pool::{split, tiles};

/// Head counts and the scoring of a product.
#[derive(Clone, Copy, Debug)]
pub struct Heads {
    /// Heads of q: a multiple of `num_kv_heads`.
    pub num_heads: usize,
    /// Heads of k and v.
    pub num_kv_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// What a product of q and k is multiplied with.
    pub scale: f32,
    /// `cap tanh(x / cap)` of the scaled product, if given.
    pub softcap: Option<f32>,
}

impl Heads {
    fn group(&self) -> usize {
        self.num_heads / self.num_kv_heads
    }

    fn check(&self) -> Result<()> {
        let Self { num_heads, num_kv_heads, head_dim, .. } = *self;
        if num_kv_heads == 0 || head_dim == 0 || !num_heads.is_multiple_of(num_kv_heads) {
            bail!(
                InvalidArgument,
                "attention with {num_heads} heads, {num_kv_heads} heads of keys, {head_dim} elements each"
            );
        }
        Ok(())
    }
}

/// Tokens of some heads each, which may lie apart, as parts of a joint row of queries, keys and values.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a, T> {
    /// The elements.
    pub data: &'a [T],
    /// Elements from token to token; 0 where all tokens are one.
    pub stride: usize,
}

impl<'a, T> Tokens<'a, T> {
    /// Tokens of `width` elements without gaps between them.
    pub fn dense(data: &'a [T], width: usize) -> Self {
        Self { data, stride: width }
    }

    fn check(&self, what: &str, tokens: usize, width: usize) -> Result<()> {
        let needed =
            tokens.checked_sub(1).map_or(Some(0), |n| n.checked_mul(self.stride)?.checked_add(width));
        if needed.is_none_or(|n| n > self.data.len()) {
            bail!(
                InvalidArgument,
                "attention: {tokens} tokens of {width} elements of {what}, {} apart, do not fit {} elements",
                self.stride,
                self.data.len()
            );
        }
        Ok(())
    }
}

/// Where the keys and values of a sequence lie.
trait Keys<T>: Sync {
    /// Offset of the head's elements of position `j` of sequence `sequence`, in elements.
    fn offset(&self, sequence: usize, head: usize, j: usize) -> usize;
    /// The data.
    fn data(&self) -> (&[T], &[T]);
}

struct Ragged<'a, T> {
    k: &'a [T],
    v: &'a [T],
    stride: usize,
    starts: &'a [i32],
    heads: Heads,
}

impl<T: Element> Keys<T> for Ragged<'_, T> {
    fn offset(&self, sequence: usize, head: usize, j: usize) -> usize {
        (self.starts[sequence] as usize + j) * self.stride + head * self.heads.head_dim
    }
    fn data(&self) -> (&[T], &[T]) {
        (self.k, self.v)
    }
}

/// Keys and values in pages `[pages, page_len, num_kv_heads, head_dim]`, and which pages a sequence has.
#[derive(Clone, Copy, Debug)]
pub struct Pages<'a, T> {
    /// The pages of keys.
    pub k: &'a [T],
    /// The pages of values.
    pub v: &'a [T],
    /// Positions per page.
    pub page_len: usize,
    /// `[R, P]`: the pages of each sequence in order.
    pub block_table: &'a [i32],
    /// P.
    pub table_width: usize,
}

struct Paged<'a, T> {
    pages: Pages<'a, T>,
    heads: Heads,
}

impl<T: Element> Keys<T> for Paged<'_, T> {
    fn offset(&self, sequence: usize, head: usize, j: usize) -> usize {
        let Pages { page_len, block_table, table_width, .. } = self.pages;
        let page = block_table[sequence * table_width + j / page_len] as usize;
        ((page * page_len + j % page_len) * self.heads.num_kv_heads + head) * self.heads.head_dim
    }
    fn data(&self) -> (&[T], &[T]) {
        (self.pages.k, self.pages.v)
    }
}

/// One sequence: its queries on the token axis, and how many keys it has.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    start: usize,
    queries: usize,
    keys: usize,
}

/// What every task knows.
struct Problem<'a, Q, K> {
    heads: Heads,
    q: Tokens<'a, Q>,
    tokens: usize,
    keys: &'a K,
    sequences: &'a [Sequence],
    mask: Mask<'a>,
}

/// The spans of the token axis that `starts` names; tokens before the first and from the last on are in none. Errors:
/// `InvalidArgument` unless it ascends within 0 to `tokens`.
pub(crate) fn spans(what: &str, starts: &[i32], tokens: usize) -> Result<Vec<Range<usize>>> {
    let fits = |s: &i32| usize::try_from(*s).is_ok_and(|s| s <= tokens);
    if starts.is_empty() || !starts.is_sorted() || !starts.iter().all(fits) {
        bail!(InvalidArgument, "{what}: starts must ascend within 0 to {tokens}, got {starts:?}");
    }
    Ok(starts.windows(2).map(|w| w[0] as usize..w[1] as usize).collect())
}

/// Attention within each sequence of a ragged batch.
///
/// Shapes: q and out `[N, num_heads, head_dim]`, k and v `[N, num_kv_heads, head_dim]`, starts `[R + 1]`; the masks of
/// [`Mask`]. N is that of out, which has no gaps; k and v have one stride. Tokens of no
/// sequence give zeros. Dtypes: q, keys and values, and the result f32, f16 or bf16; scores and sums are f32. Errors:
/// `InvalidArgument` where slices and sizes do not agree.
pub fn ragged<Q: Element, T: Element, Y: Element>(
    cpu: Cpu<'_>,
    heads: Heads,
    q: Tokens<'_, Q>,
    (k, v): (Tokens<'_, T>, Tokens<'_, T>),
    starts: &[i32],
    mask: Mask<'_>,
    out: &mut [Y],
) -> Result<()> {
    heads.check()?;
    let tokens = out.len() / (heads.num_heads * heads.head_dim);
    let width = heads.num_kv_heads * heads.head_dim;
    k.check("keys", tokens, width)?;
    v.check("values", tokens, width)?;
    if k.stride != v.stride {
        bail!(InvalidArgument, "attention: keys are {} elements apart, values {}", k.stride, v.stride);
    }
    let sequences: Vec<Sequence> = spans("attention", starts, tokens)?
        .into_iter()
        .map(|span| Sequence { start: span.start, queries: span.len(), keys: span.len() })
        .collect();
    let keys = Ragged { k: k.data, v: v.data, stride: k.stride, starts, heads };
    run(cpu, &Problem { heads, q, tokens, keys: &keys, sequences: &sequences, mask }, out)
}

/// Attention of new tokens over the state of their sequences, which holds their own keys and values already.
///
/// Query i of a sequence with n new tokens and a total length L sits at position L - n + i. Shapes: q and out
/// `[N, num_heads, head_dim]`, starts `[R + 1]`, lengths `[R]`, the rest as in [`Pages`]. Dtypes: as in [`ragged`].
/// Errors: `InvalidArgument` where slices and sizes do not agree, a length is below the number of new tokens, or a
/// page that is needed does not exist.
pub fn paged<Q: Element, T: Element, Y: Element>(
    cpu: Cpu<'_>,
    heads: Heads,
    q: Tokens<'_, Q>,
    starts: &[i32],
    lengths: &[i32],
    pages: Pages<'_, T>,
    mask: Mask<'_>,
    out: &mut [Y],
) -> Result<()> {
    heads.check()?;
    let tokens = out.len() / (heads.num_heads * heads.head_dim);
    let spans = spans("attention over state", starts, tokens)?;
    let page_elems = pages.page_len.saturating_mul(heads.num_kv_heads * heads.head_dim).max(1);
    let count = pages.k.len().min(pages.v.len()) / page_elems;
    if lengths.len() != spans.len() || pages.block_table.len() != spans.len() * pages.table_width {
        bail!(
            InvalidArgument,
            "attention over state: {} sequences, {} lengths, a block table of {} by {}",
            spans.len(),
            lengths.len(),
            pages.block_table.len(),
            pages.table_width
        );
    }
    let mut sequences = Vec::with_capacity(spans.len());
    for (r, span) in spans.into_iter().enumerate() {
        let keys = usize::try_from(lengths[r]).unwrap_or(0);
        let needed = keys.div_ceil(pages.page_len.max(1));
        let table = &pages.block_table[r * pages.table_width..][..pages.table_width];
        let exist = |page: &i32| usize::try_from(*page).is_ok_and(|p| p < count);
        if keys < span.len()
            || pages.page_len == 0
            || needed > table.len()
            || !table[..needed].iter().all(exist)
        {
            bail!(
                InvalidArgument,
                "attention over state: sequence {r} with {} new tokens and length {} does not fit its pages {:?} \
                 of {} positions ({count} pages exist)",
                span.len(),
                lengths[r],
                &table[..needed.min(table.len())],
                pages.page_len
            );
        }
        sequences.push(Sequence { start: span.start, queries: span.len(), keys });
    }
    let keys = Paged { pages, heads };
    run(cpu, &Problem { heads, q, tokens, keys: &keys, sequences: &sequences, mask }, out)
}

/// Rows (tokens times heads of a group) that share the conversion of a block of keys.
const TASK_ROWS: usize = 128;

fn run<Q: Element, T: Element, K: Keys<T>, Y: Element>(
    cpu: Cpu<'_>,
    problem: &Problem<'_, Q, K>,
    out: &mut [Y],
) -> Result<()> {
    let Heads { num_heads, num_kv_heads, head_dim, .. } = problem.heads;
    let width = num_heads * head_dim;
    problem.q.check("queries", problem.tokens, width)?;
    if out.len() != problem.tokens * width {
        bail!(InvalidArgument, "attention of {num_heads} heads of {head_dim} elements into {}", out.len());
    }
    let most_keys = problem.sequences.iter().map(|s| s.keys).max().unwrap_or(0);
    problem.mask.check(num_heads, problem.tokens, most_keys)?;
    // Tokens before the first sequence and behind the last see nothing.
    let first = problem.sequences.first().map_or(0, |s| s.start);
    let tokens = problem.sequences.last().map_or(0, |s| s.start + s.queries);
    let (out, behind) = out.split_at_mut(tokens * width);
    out[..first * width].fill(Y::default());
    behind.fill(Y::default());
    let work: usize =
        problem.sequences.iter().map(|s| s.queries.saturating_mul(s.keys).saturating_mul(width)).sum();
    let parts = cpu.parts(work);
    let group = problem.heads.group();
    let (tokens_each, _) = split(tokens, 1, parts.div_ceil(num_kv_heads));
    let tokens_each = tokens_each.min((TASK_ROWS / group).max(1));
    // A small job is not cut by heads either: one tile of all columns runs on the caller.
    let columns = if parts == 1 { width } else { group * head_dim };
    tiles(cpu.pool, out, [tokens, width], width, [tokens_each, columns], |mut tile| {
        let (first, last) = (tile.row(), tile.row() + tile.rows());
        let reaching = problem.sequences.partition_point(|s| s.start + s.queries <= first);
        for (r, sequence) in problem.sequences.iter().enumerate().skip(reaching) {
            if sequence.start >= last {
                break;
            }
            let from = first.max(sequence.start);
            let to = last.min(sequence.start + sequence.queries);
            if from == to {
                continue;
            }
            let group_columns = group * head_dim;
            for head in tile.col() / group_columns..(tile.col() + tile.cols()) / group_columns {
                block::attend(cpu.level, problem, r, head, from..to, &mut tile);
            }
        }
    })
}
