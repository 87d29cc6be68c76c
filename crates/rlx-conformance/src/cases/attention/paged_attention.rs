//! `paged_attention`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, FLOATS, SMALL_FLOATS, Samples};

/// Mask kinds, head dims, groups, dtypes of query and state, prefill, single steps, empty sequences, wrong tables.
pub(crate) struct PagedAttention;

/// What a sample's graph says.
#[derive(Clone, Copy)]
struct Shape<'a> {
    q: DType,
    state: DType,
    heads: usize,
    kv_heads: usize,
    dim: usize,
    v_dim: usize,
    page_len: usize,
    attrs: &'a str,
}

/// Starts of the new tokens, and lengths with them.
type Batch<'a> = (&'a [i64], &'a [i64]);

const PAGES: usize = 12;
const SYMBOLS: &str = "N <= 40, R <= 6";

impl Shape<'_> {
    fn plain(q: DType, state: DType) -> Self {
        Self {
            q,
            state,
            heads: 2,
            kv_heads: 2,
            dim: 8,
            v_dim: 8,
            page_len: 4,
            attrs: "mask = causal, scale = 0.35",
        }
    }

    fn add(
        self,
        samples: &mut Samples,
        label: &str,
        (starts, lengths): Batch<'_>,
        wrong: Option<i64>,
    ) -> Result<()> {
        let Self { q, state, heads, kv_heads, dim, v_dim, page_len, attrs } = self;
        let width = lengths.iter().map(|l| (*l as usize).div_ceil(page_len)).max().unwrap_or(0) + 1;
        let body = format!(
            "%q = input \"q\" : {q}[N, {heads}, {dim}]\n%k = state \"k\" : {state}[{PAGES}, {page_len}, {kv_heads}, {dim}]\n\
             %v = state \"v\" : {state}[{PAGES}, {page_len}, {kv_heads}, {v_dim}]\n%s = input \"s\" : i32[R + 1]\n\
             %l = input \"l\" : i32[R]\n%t = input \"t\" : i32[R, {width}]\n\
             %y = paged_attention %q, %k, %v, %s, %l, %t {{{attrs}}}\nreturn %y"
        );
        let n = starts.last().map_or(0, |s| *s as usize);
        let sizes = [("N", n), ("R", lengths.len())];
        let sample = samples.add(q, label, (SYMBOLS, &sizes), &body)?;
        // Pages in an order that is not theirs; entries that nothing may read are out of range.
        let mut next = 0;
        let mut table = Vec::new();
        for length in lengths {
            let used = (*length as usize).div_ceil(page_len);
            for i in 0..width {
                if i < used {
                    table.push(((next * 5 + 3) % PAGES) as i64);
                    next += 1;
                } else {
                    table.push(-1);
                }
            }
        }
        if let Some(wrong) = wrong {
            table[0] = wrong;
        }
        sample.ints("s", starts)?.ints("l", lengths)?.ints("t", &table)?;
        if wrong.is_some() {
            sample.refuse();
        }
        Ok(())
    }
}

const BATCHES: [(&str, &[i64], &[i64]); 9] = [
    ("tokens before the first", &[2, 4, 5], &[6, 3]),
    ("prefill", &[0, 9], &[9]),
    ("prefill of two", &[0, 4, 11], &[4, 7]),
    ("one step", &[0, 1], &[10]),
    ("first token", &[0, 1], &[1]),
    ("steps of three", &[0, 1, 2, 3], &[10, 1, 8]),
    ("chunk after a prefix", &[0, 5], &[13]),
    ("mixed, one empty", &[0, 4, 4, 5], &[9, 0, 12]),
    ("no new token", &[0, 0], &[6]),
];

impl Case for PagedAttention {
    fn name(&self) -> &'static str {
        "paged_attention"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for q in FLOATS {
            for state in SMALL_FLOATS {
                for (label, starts, lengths) in BATCHES {
                    let shape = Shape::plain(q, state);
                    shape.add(samples, &format!("{state} {label}"), (starts, lengths), None)?;
                }
            }
        }
        for attrs in [
            "mask = none, scale = 0.35",
            "mask = sliding_window, window = 1, scale = 0.35",
            "mask = sliding_window, window = 3, scale = 0.35",
            "mask = local, window = 2, scale = 0.35",
            "mask = causal, scale = 0.35, softcap = 1.5",
        ] {
            for (label, starts, lengths) in BATCHES {
                let shape = Shape { attrs, ..Shape::plain(DType::F32, DType::F16) };
                shape.add(samples, &format!("{attrs} {label}"), (starts, lengths), None)?;
            }
        }
        for dim in [1, 7, 32, 64, 80, 128, 256] {
            let shape = Shape { dim, v_dim: dim, ..Shape::plain(DType::F32, DType::F16) };
            shape.add(samples, &format!("head_dim {dim}"), (&[0, 3, 4], &[7, 9]), None)?;
        }
        head_dims(samples)?;
        for (heads, kv_heads) in [(4, 1), (6, 2), (3, 3), (9, 3)] {
            let shape = Shape { heads, kv_heads, ..Shape::plain(DType::F32, DType::F16) };
            let label = format!("{heads} heads over {kv_heads}");
            shape.add(samples, &label, (&[0, 3, 4], &[7, 9]), None)?;
        }
        for page_len in [1, 3, 16, 32] {
            let shape = Shape { page_len, ..Shape::plain(DType::F32, DType::F16) };
            let lengths: [i64; 2] = if page_len < 16 { [4, 5] } else { [33, 9] };
            shape.add(samples, &format!("pages of {page_len}"), (&[0, 3, 4], &lengths), None)?;
        }
        let shape = Shape { v_dim: 5, ..Shape::plain(DType::F32, DType::F16) };
        shape.add(samples, "narrow values", (&[0, 3, 4], &[7, 9]), None)?;
        for q in [DType::F32, DType::F64] {
            for wrong in [-1, PAGES as i64] {
                Shape::plain(q, DType::F16).add(
                    samples,
                    &format!("page {wrong}"),
                    (&[0, 3], &[7]),
                    Some(wrong),
                )?;
            }
        }
        Ok(())
    }
}

/// The head dims that models have, for a few tokens and for prompts of many, one of them after a prefix.
fn head_dims(samples: &mut Samples) -> Result<()> {
    const HALVES: [DType; 2] = [DType::F32, DType::F16];
    for (q, state) in HALVES.into_iter().flat_map(|q| HALVES.map(|state| (q, state))) {
        for dim in [32, 64, 96, 128, 256] {
            let shape =
                Shape { heads: 2, kv_heads: 1, dim, v_dim: dim, page_len: 16, ..Shape::plain(q, state) };
            for (label, starts, lengths) in
                [("steps", [0, 3, 4], [7, 20]), ("prompts", [0, 17, 37], [17, 49])]
            {
                shape.add(samples, &format!("{state} {label} head_dim {dim}"), (&starts, &lengths), None)?;
            }
        }
    }
    Ok(())
}
