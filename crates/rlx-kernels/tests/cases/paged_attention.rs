use std::sync::Arc;

use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::attention::paged_attention::PagedAttention;
use rlx_ir::{DType, Tensor, TensorType};
use rlx_kernels::call::{AttentionBody, paged_attention_by};

use crate::harness::{FLOATS, Placement, cases, check_call, check_survives, random, reference};

cases! {
    prefill_single_steps_and_both,
    every_mask_without_an_operand,
    heads_groups_and_pages_of_every_size,
    every_type_at_every_size_that_has_a_kernel,
    lengths_and_pages_that_do_not_fit_read_nothing_outside,
    pages_drawn_at_random,
}

const BODIES: [AttentionBody; 2] = [AttentionBody::Rows, AttentionBody::Tiles];

const CAUSAL: PagedAttention = PagedAttention { mask: Mask::Causal, scale: 0.3, softcap: None };

const PAGES: usize = 40;

/// What queries and state look like.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) q: DType,
    pub(super) state: DType,
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) dim: usize,
    pub(super) v_dim: usize,
    pub(super) page_len: usize,
}

impl Shape {
    fn plain(q: DType, state: DType) -> Self {
        Self { q, state, heads: 2, kv_heads: 1, dim: 20, v_dim: 20, page_len: 4 }
    }

    /// All operands. Pages come in an order that is not theirs; slots and entries that nobody may read hold NaN and
    /// numbers of no page.
    pub(super) fn operands(self, rng: &mut SplitMix64, starts: &[i32], lengths: &[usize]) -> Vec<Tensor> {
        let Self { q, state, heads, kv_heads, dim, v_dim, page_len } = self;
        let tokens = starts.last().map_or(0, |s| *s as usize);
        let width = lengths.iter().map(|l| l.div_ceil(page_len)).max().unwrap_or(0) + 1;
        let (mut table, mut used) = (Vec::new(), vec![false; PAGES * page_len]);
        let mut next = 0;
        for &length in lengths {
            for i in 0..width {
                if i * page_len >= length {
                    table.push(-1);
                    continue;
                }
                let page = (next * 7 + 3) % PAGES;
                next += 1;
                table.push(page as i32);
                let held = page_len.min(length - i * page_len);
                used[page * page_len..][..held].fill(true);
            }
        }
        assert!(next <= PAGES);
        let mut pages = |dim: usize| {
            let ty = TensorType::new(state, [PAGES, page_len, kv_heads, dim]);
            let row = kv_heads * dim;
            let value = |i: usize| if used[i / row] { 4.0 * rng.uniform() - 2.0 } else { f64::NAN };
            Tensor::from_f64(ty.clone(), &(0..ty.elems()).map(value).collect::<Vec<_>>()).unwrap()
        };
        let (k, v) = (pages(dim), pages(v_dim));
        let lengths: Vec<i32> = lengths.iter().map(|l| *l as i32).collect();
        vec![
            random(rng, q, &[tokens, heads, dim], (-2.0, 2.0)),
            k,
            v,
            Tensor::i32([starts.len()], starts).unwrap(),
            Tensor::i32([lengths.len()], &lengths).unwrap(),
            Tensor::i32([lengths.len(), width], &table).unwrap(),
        ]
    }
}

/// Starts of the new tokens, and lengths with them.
const BATCHES: [(&[i32], &[usize]); 9] = [
    (&[2, 4, 5], &[6, 3]),
    (&[0, 9], &[9]),
    (&[0, 19, 41], &[19, 22]),
    (&[0, 1], &[70]),
    (&[0, 1], &[1]),
    (&[0, 1, 2, 3], &[10, 1, 8]),
    (&[0, 35], &[75]),
    (&[0, 4, 4, 5, 22], &[9, 0, 12, 50]),
    (&[0, 0], &[6]),
];

fn check_by(body: AttentionBody, op: PagedAttention, operands: &[Tensor], seed: u64) {
    let expected = reference(Arc::new(op), operands);
    check_call(&format!("{op:?}"), &expected, operands, Placement::Dense, seed, |layouts| {
        paged_attention_by(body, &op, layouts).unwrap()
    });
}

fn check_both(op: PagedAttention, operands: &[Tensor], seed: u64) {
    for body in BODIES {
        check_by(body, op, operands, seed);
    }
}

fn prefill_single_steps_and_both() {
    let mut rng = SplitMix64::new(1);
    for q in FLOATS {
        for state in FLOATS {
            for (seed, (starts, lengths)) in BATCHES.into_iter().enumerate() {
                let operands = Shape::plain(q, state).operands(&mut rng, starts, lengths);
                check_both(CAUSAL, &operands, seed as u64);
            }
        }
    }
}

fn every_mask_without_an_operand() {
    let mut rng = SplitMix64::new(2);
    let masks = [
        Mask::None,
        Mask::SlidingWindow { window: 1 },
        Mask::SlidingWindow { window: 9 },
        Mask::Local { window: 0 },
        Mask::Local { window: 3 },
    ];
    for mask in masks {
        for (starts, lengths) in [BATCHES[2], BATCHES[7]] {
            let operands = Shape::plain(DType::F32, DType::F16).operands(&mut rng, starts, lengths);
            for (body, softcap) in BODIES.into_iter().zip([Some(1.5), None]) {
                check_by(body, PagedAttention { mask, scale: 0.3, softcap }, &operands, 3);
            }
        }
    }
}

fn heads_groups_and_pages_of_every_size() {
    let mut rng = SplitMix64::new(3);
    let plain = Shape::plain(DType::F32, DType::F16);
    let dims = [1, 32, 33, 64, 80, 128, 130, 256].map(|dim| Shape { dim, v_dim: dim, ..plain });
    let groups = [(4, 1), (6, 2), (3, 3), (8, 1)].map(|(heads, kv_heads)| Shape { heads, kv_heads, ..plain });
    let pages = [1, 3, 16, 32].map(|page_len| Shape { page_len, ..plain });
    let narrow = [Shape { v_dim: 5, ..plain }, Shape { dim: 5, ..plain }];
    for shape in dims.iter().chain(&groups).chain(&pages).chain(&narrow) {
        let operands = shape.operands(&mut rng, &[0, 10, 11], &[17, 19]);
        check_both(CAUSAL, &operands, 1);
    }
}

fn every_type_at_every_size_that_has_a_kernel() {
    let mut rng = SplitMix64::new(5);
    for q in FLOATS {
        for state in FLOATS {
            for dim in [64, 96, 128, 256] {
                let shape = Shape { dim, v_dim: dim, ..Shape::plain(q, state) };
                check_both(CAUSAL, &shape.operands(&mut rng, &[0, 10, 11], &[17, 19]), 1);
            }
        }
    }
}

fn lengths_and_pages_that_do_not_fit_read_nothing_outside() {
    let mut rng = SplitMix64::new(4);
    for body in BODIES {
        for (lengths, entry) in
            [([2, 9], 3), ([100, 9], 3), ([-5, i32::MAX], 3), ([7, 9], 40), ([7, 9], i32::MIN)]
        {
            let mut operands = Shape::plain(DType::F32, DType::F32).operands(&mut rng, &[0, 3, 18], &[7, 18]);
            operands[4] = Tensor::i32([2], &lengths).unwrap();
            let mut table: Vec<i32> = operands[5].to_i64().unwrap().into_iter().map(|e| e as i32).collect();
            table[0] = entry;
            operands[5] = Tensor::i32(operands[5].shape(), &table).unwrap();
            let what = format!("lengths {lengths:?}, page {entry}");
            check_survives(&what, operands[0].ty(), &operands, |layouts| {
                paged_attention_by(body, &CAUSAL, layouts).unwrap()
            });
        }
    }
}

/// A batch, heads and pages that nobody thought of.
fn drawn(seed: u64) {
    let mut rng = SplitMix64::new(0x9a6e_0000 + seed);
    let mut pick = |list: &[usize]| list[rng.below(list.len())];
    let kv_heads = pick(&[1, 2, 3]);
    let shape = Shape {
        q: FLOATS[pick(&[0, 1])],
        state: FLOATS[pick(&[0, 1])],
        heads: kv_heads * pick(&[1, 2, 3, 5]),
        kv_heads,
        dim: pick(&[3, 16, 40, 64, 90, 128, 192, 256]),
        v_dim: pick(&[8, 17, 32, 64, 128, 250]),
        page_len: pick(&[5, 8, 16, 32]),
    };
    let mut starts = vec![pick(&[0, 0, 1]) as i32];
    let mut lengths = Vec::new();
    for _ in 0..pick(&[1, 2, 4]) {
        let new = pick(&[0, 1, 1, 2, 9, 16, 25]);
        starts.push(starts[starts.len() - 1] + new as i32);
        lengths.push(new + pick(&[0, 1, 5, 20]));
    }
    let operands = shape.operands(&mut rng, &starts, &lengths);
    let masks = [Mask::None, Mask::Causal, Mask::SlidingWindow { window: 7 }, Mask::Local { window: 4 }];
    let op = PagedAttention {
        mask: masks[rng.below(4)],
        scale: [0.1, 0.5, -1.5][rng.below(3)],
        softcap: [None, Some(3.0)][rng.below(2)],
    };
    check_by(BODIES[rng.below(2)], op, &operands, seed);
}

fn pages_drawn_at_random() {
    (0..16).for_each(drawn);
}
