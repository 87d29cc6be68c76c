use std::sync::Arc;

use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::{DType, Tensor, TensorType};
use rlx_kernels::call::{AttentionBody, attention_by};

use crate::harness::{FLOATS, Placement, cases, check_call, check_survives, random, reference};

cases! {
    heads_of_every_size,
    every_mask_over_ragged_sequences,
    one_to_many_sequences,
    long_sequences,
    grouped_heads,
    without_tokens_or_sequences,
    queries_that_see_no_key_give_zeros,
    what_is_hidden_does_not_matter,
    values_that_are_infinite_reach_those_who_see_them,
    values_that_are_infinite_reach_those_who_hardly_see_them,
    the_largest_score_may_come_late_or_early,
    wide_heads_whose_largest_score_comes_late,
    parts_of_a_joint_row,
    starts_and_masks_that_do_not_fit_read_nothing_outside,
    sizes_drawn_at_random,
}

const BODIES: [AttentionBody; 2] = [AttentionBody::Rows, AttentionBody::Tiles];

const CAUSAL: Attention = Attention { mask: Mask::Causal, scale: 0.3, softcap: None };

/// What queries, keys and values look like.
#[derive(Clone, Copy)]
struct Shape {
    dtype: DType,
    heads: usize,
    kv_heads: usize,
    dim: usize,
    v_dim: usize,
}

impl Shape {
    fn plain(dtype: DType) -> Self {
        Self { dtype, heads: 2, kv_heads: 1, dim: 20, v_dim: 20 }
    }

    /// Queries, keys, values and starts.
    fn operands(self, rng: &mut SplitMix64, tokens: usize, starts: &[i32]) -> Vec<Tensor> {
        let Self { dtype, heads, kv_heads, dim, v_dim } = self;
        let mut values = |heads: usize, dim: usize| random(rng, dtype, &[tokens, heads, dim], (-2.0, 2.0));
        vec![
            values(heads, dim),
            values(kv_heads, dim),
            values(kv_heads, v_dim),
            Tensor::i32([starts.len()], starts).unwrap(),
        ]
    }
}

/// Sequences of these lengths behind each other.
fn starts_of(lengths: &[usize]) -> (usize, Vec<i32>) {
    let mut at = 0;
    let ends = lengths.iter().map(|len| {
        at += len;
        at as i32
    });
    let starts = std::iter::once(0).chain(ends).collect();
    (lengths.iter().sum(), starts)
}

/// Sequences of 2, 0, 17 and 33 tokens; before, between (by an empty one) and behind them tokens of none.
const RAGGED: (usize, &[i32]) = (57, &[1, 3, 3, 20, 20, 53]);

fn check_by(body: AttentionBody, op: Attention, operands: &[Tensor], placement: Placement, seed: u64) {
    let expected = reference(Arc::new(op), operands);
    check_call(&format!("{op:?}"), &expected, operands, placement, seed, |layouts| {
        attention_by(body, &op, layouts).unwrap()
    });
}

fn check_both(op: Attention, operands: &[Tensor], placement: Placement, seed: u64) {
    for body in BODIES {
        check_by(body, op, operands, placement, seed);
    }
}

fn heads_of_every_size() {
    let mut rng = SplitMix64::new(1);
    for dtype in FLOATS {
        for (seed, dim) in [1, 7, 8, 31, 32, 33, 64, 72, 96, 127, 128, 129, 200, 256].into_iter().enumerate()
        {
            let shape = Shape { dim, v_dim: dim, ..Shape::plain(dtype) };
            let op = Attention { scale: 1.0 / (dim as f64).sqrt(), ..CAUSAL };
            for (body, lengths) in [(BODIES[0], [5, 6]), (BODIES[1], [21, 18])] {
                let (tokens, starts) = starts_of(&lengths);
                check_by(body, op, &shape.operands(&mut rng, tokens, &starts), Placement::Gaps, seed as u64);
            }
        }
        for (dim, v_dim) in [(64, 24), (24, 64), (16, 130), (200, 1)] {
            let operands = Shape { dim, v_dim, ..Shape::plain(dtype) }.operands(&mut rng, 17, &[0, 17]);
            check_both(CAUSAL, &operands, Placement::Dense, 1);
        }
    }
}

/// The mask kinds, with the number of heads and the dtype of an operand.
const MASKS: [(Mask, Option<(usize, DType)>); 12] = [
    (Mask::None, None),
    (Mask::Causal, None),
    (Mask::SlidingWindow { window: 1 }, None),
    (Mask::SlidingWindow { window: 4 }, None),
    (Mask::SlidingWindow { window: 100 }, None),
    (Mask::Local { window: 0 }, None),
    (Mask::Local { window: 3 }, None),
    (Mask::Custom, Some((1, DType::Bool))),
    (Mask::Custom, Some((2, DType::Bool))),
    (Mask::Bias, Some((1, DType::F32))),
    (Mask::Bias, Some((2, DType::F32))),
    (Mask::Bias, Some((2, DType::F16))),
];

/// A mask operand of some width; every third element is false or minus infinity.
pub(super) fn mask_operand(rng: &mut SplitMix64, dtype: DType, [heads, tokens, width]: [usize; 3]) -> Tensor {
    let ty = TensorType::new(dtype, [heads, tokens, width]);
    let values: Vec<f64> = (0..ty.elems())
        .map(|_| match (rng.below(3), dtype) {
            (0, DType::Bool) => 0.0,
            (0, _) => f64::NEG_INFINITY,
            (_, DType::Bool) => 1.0,
            _ => 4.0 * rng.uniform() - 2.0,
        })
        .collect();
    Tensor::from_f64(ty, &values).unwrap()
}

fn every_mask_over_ragged_sequences() {
    let mut rng = SplitMix64::new(2);
    let (tokens, starts) = RAGGED;
    for dtype in FLOATS {
        let operands = Shape::plain(dtype).operands(&mut rng, tokens, starts);
        for (seed, (mask, operand)) in MASKS.into_iter().enumerate() {
            let operand = operand.map(|(heads, dtype)| mask_operand(&mut rng, dtype, [heads, tokens, 40]));
            let operands: Vec<Tensor> = operands.iter().cloned().chain(operand).collect();
            for (body, softcap) in BODIES.into_iter().zip([None, Some(1.5)]) {
                check_by(
                    body,
                    Attention { mask, scale: 0.3, softcap },
                    &operands,
                    Placement::Gaps,
                    seed as u64,
                );
            }
        }
    }
}

fn one_to_many_sequences() {
    let mut rng = SplitMix64::new(3);
    let (ones, growing): (Vec<usize>, Vec<usize>) = (vec![1; 33], (0..16).collect());
    let cases: [&[usize]; 11] =
        [&[1], &[2], &[8, 8], &[9, 7], &[31], &[32], &[33], &[1, 64, 1], &[65, 0, 64], &ones, &growing];
    for dtype in FLOATS {
        for (seed, lengths) in cases.into_iter().enumerate() {
            let (tokens, starts) = starts_of(lengths);
            let operands = Shape::plain(dtype).operands(&mut rng, tokens, &starts);
            for (body, mask) in BODIES.into_iter().zip([Mask::None, Mask::Causal]) {
                check_by(body, Attention { mask, ..CAUSAL }, &operands, Placement::Dense, seed as u64);
                check_by(body, Attention { mask, ..CAUSAL }, &operands, Placement::Gaps, seed as u64 + 1);
            }
        }
    }
}

fn long_sequences() {
    let mut rng = SplitMix64::new(4);
    let shape = Shape { heads: 1, ..Shape::plain(DType::F16) };
    for (lengths, mask) in
        [([513, 0], Mask::None), ([255, 258], Mask::Causal), ([13, 500], Mask::SlidingWindow { window: 64 })]
    {
        let (tokens, starts) = starts_of(&lengths);
        let operands = shape.operands(&mut rng, tokens, &starts);
        check_by(AttentionBody::Tiles, Attention { mask, ..CAUSAL }, &operands, Placement::Dense, 2);
    }
    let operands = shape.operands(&mut rng, 300, &[0, 299, 300]);
    let op = Attention { mask: Mask::Local { window: 130 }, ..CAUSAL };
    check_by(AttentionBody::Rows, op, &operands, Placement::Dense, 2);
}

fn grouped_heads() {
    let mut rng = SplitMix64::new(5);
    for dtype in FLOATS {
        for (heads, kv_heads) in [(1, 1), (3, 3), (4, 2), (4, 1), (8, 1), (6, 2), (16, 2)] {
            let shape = Shape { heads, kv_heads, dim: 8, v_dim: 8, ..Shape::plain(dtype) };
            let operands = shape.operands(&mut rng, 19, &[0, 17, 19]);
            check_both(CAUSAL, &operands, Placement::Gaps, 1);
        }
    }
}

fn without_tokens_or_sequences() {
    let mut rng = SplitMix64::new(6);
    for body in BODIES {
        for (tokens, starts) in
            [(0, [0].as_slice()), (0, &[0, 0, 0]), (5, &[0]), (5, &[2, 2]), (40, &[37, 37, 37])]
        {
            let operands = Shape::plain(DType::F32).operands(&mut rng, tokens, starts);
            check_by(body, CAUSAL, &operands, Placement::Dense, 1);
        }
    }
}

fn queries_that_see_no_key_give_zeros() {
    let mut rng = SplitMix64::new(7);
    let shape = [1, 21, 21];
    let every_other = |i: usize| (i / 21).is_multiple_of(2);
    for dtype in FLOATS {
        let mut operands = Shape::plain(dtype).operands(&mut rng, 21, &[0, 21]);
        for mask in [Mask::Custom, Mask::Bias] {
            let (ty, hidden) = match mask {
                Mask::Custom => (DType::Bool, 0.0),
                _ => (DType::F32, f64::NEG_INFINITY),
            };
            let values: Vec<f64> = (0..21 * 21).map(|i| if every_other(i) { hidden } else { 1.0 }).collect();
            operands.push(Tensor::from_f64(TensorType::new(ty, shape), &values).unwrap());
            check_both(Attention { mask, ..CAUSAL }, &operands, Placement::Gaps, 1);
            operands.pop();
        }
    }
}

/// Overwrites the elements of a token.
fn fill(tensor: &mut Tensor, token: usize, value: f64) {
    let width: usize = tensor.shape()[1..].iter().product();
    let mut values = tensor.to_f64().unwrap();
    values[token * width..][..width].fill(value);
    *tensor = Tensor::from_f64(tensor.ty().clone(), &values).unwrap();
}

fn what_is_hidden_does_not_matter() {
    let mut rng = SplitMix64::new(8);
    for dtype in FLOATS {
        // Tokens of another sequence, outside of all, and after a query.
        let mut operands = Shape::plain(dtype).operands(&mut rng, 40, &[0, 17, 38]);
        for token in [16, 20, 37, 39] {
            fill(&mut operands[1], token, f64::NAN);
            fill(&mut operands[2], token, f64::NAN);
        }
        check_both(CAUSAL, &operands, Placement::Dense, 1);
        // A query of NaN alone gives NaN.
        fill(&mut operands[0], 5, f64::NAN);
        check_both(CAUSAL, &operands, Placement::Dense, 2);
        // A key that a mask hides.
        let mut operands = Shape::plain(dtype).operands(&mut rng, 20, &[0, 20]);
        operands.push(
            Tensor::from_i64(
                TensorType::new(DType::Bool, [1, 20, 20]),
                &[[0; 3].as_slice(), &[1; 17]].concat().repeat(20),
            )
            .unwrap(),
        );
        fill(&mut operands[1], 1, f64::INFINITY);
        fill(&mut operands[2], 2, f64::INFINITY);
        check_both(Attention { mask: Mask::Custom, ..CAUSAL }, &operands, Placement::Dense, 3);
    }
}

fn values_that_are_infinite_reach_those_who_see_them() {
    let mut rng = SplitMix64::new(9);
    for dtype in FLOATS {
        let mut operands = Shape::plain(dtype).operands(&mut rng, 50, &[0, 20, 50]);
        fill(&mut operands[2], 3, f64::INFINITY);
        fill(&mut operands[2], 45, f64::NEG_INFINITY);
        for mask in [Mask::Causal, Mask::Local { window: 2 }] {
            check_both(Attention { mask, ..CAUSAL }, &operands, Placement::Dense, 1);
        }
    }
}

/// A weight that is 0 in f32 makes NaN of an infinite value, where the value's sum is infinite.
fn values_that_are_infinite_reach_those_who_hardly_see_them() {
    let op = Attention { mask: Mask::None, scale: 1.0, softcap: None };
    for dtype in FLOATS {
        for (step, token) in [(2.0, 3), (-2.0, 126)] {
            let mut operands = slope(dtype, 130, step);
            fill(&mut operands[2], token, f64::INFINITY);
            check_both(op, &operands, Placement::Dense, 1);
        }
    }
}

/// Keys whose scores grow or fall by `step` from each to the next, for queries of ones.
fn slope(dtype: DType, tokens: usize, step: f64) -> Vec<Tensor> {
    let mut rng = SplitMix64::new(10);
    let tokens_i32 = tokens as i32;
    let mut operands =
        Shape { heads: 1, dim: 8, ..Shape::plain(dtype) }.operands(&mut rng, tokens, &[0, tokens_i32]);
    let keys: Vec<f64> = (0..tokens * 8).map(|i| (i / 8) as f64 * step / 8.0).collect();
    operands[0] = Tensor::from_f64(operands[0].ty().clone(), &vec![1.0; tokens * 8]).unwrap();
    operands[1] = Tensor::from_f64(operands[1].ty().clone(), &keys).unwrap();
    operands
}

fn the_largest_score_may_come_late_or_early() {
    for dtype in FLOATS {
        // From block to block by less and by more than the slack, and so far that nothing is left of what came before.
        for step in [0.0625, 0.5, 8.0, -0.0625, -8.0] {
            let op = Attention { mask: Mask::None, scale: 1.0, softcap: None };
            check_both(op, &slope(dtype, 130, step), Placement::Dense, 1);
        }
        let op = Attention { mask: Mask::None, scale: -20.0, softcap: Some(30.0) };
        check_both(op, &slope(dtype, 70, 0.25), Placement::Dense, 1);
    }
}

/// Heads of two simdgroups each: what they share is scaled anew on both sides.
fn wide_heads_whose_largest_score_comes_late() {
    let mut rng = SplitMix64::new(11);
    let shape = Shape { heads: 1, dim: 256, v_dim: 250, ..Shape::plain(DType::F16) };
    let operands = shape.operands(&mut rng, 70, &[0, 3, 70]);
    for seed in [1, 2] {
        let op = Attention { mask: Mask::None, scale: 1.5, softcap: None };
        check_by(AttentionBody::Tiles, op, &operands, Placement::Dense, seed);
    }
}

/// Queries, keys and values as parts of one row, as a product of all three gives them.
fn parts_of_a_joint_row() {
    let mut rng = SplitMix64::new(12);
    for dtype in FLOATS {
        let shape = Shape { heads: 4, kv_heads: 2, ..Shape::plain(dtype) };
        check_both(CAUSAL, &shape.operands(&mut rng, 37, &[0, 20, 37]), Placement::Joint, 1);
    }
}

fn starts_and_masks_that_do_not_fit_read_nothing_outside() {
    let mut rng = SplitMix64::new(13);
    for body in BODIES {
        for (starts, mask) in [
            ([0, 14, 3], Mask::None),
            ([0, 3, 90], Mask::None),
            ([-7, 3, 18], Mask::Causal),
            ([i32::MAX, i32::MIN, i32::MAX], Mask::None),
            ([i32::MIN, i32::MAX, i32::MIN], Mask::Local { window: 5 }),
            ([0, 3, 18], Mask::Custom),
            ([-1, 30, 18], Mask::Bias),
        ] {
            let mut operands = Shape::plain(DType::F32).operands(&mut rng, 18, &starts);
            match mask {
                Mask::Custom => operands.push(mask_operand(&mut rng, DType::Bool, [1, 18, 4])),
                Mask::Bias => operands.push(mask_operand(&mut rng, DType::F16, [2, 18, 9])),
                _ => {}
            }
            let op = Attention { mask, ..CAUSAL };
            check_survives(
                &format!("{op:?} with starts {starts:?}"),
                operands[0].ty(),
                &operands,
                |layouts| attention_by(body, &op, layouts).unwrap(),
            );
        }
    }
}

/// A batch, heads and a mask that nobody thought of.
fn drawn(seed: u64) {
    let mut rng = SplitMix64::new(0xa77e_0000 + seed);
    let mut pick = |list: &[usize]| list[rng.below(list.len())];
    let kv_heads = pick(&[1, 2, 3]);
    let shape = Shape {
        dtype: FLOATS[pick(&[0, 1])],
        heads: kv_heads * pick(&[1, 2, 3, 5]),
        kv_heads,
        dim: pick(&[3, 16, 24, 40, 64, 90, 128, 144, 192, 256]),
        v_dim: pick(&[8, 17, 32, 64, 100, 128, 250]),
    };
    let mut starts = vec![pick(&[0, 0, 1, 9]) as i32];
    for _ in 0..pick(&[1, 2, 3, 6, 12]) {
        starts.push(starts[starts.len() - 1] + pick(&[0, 1, 2, 7, 15, 16, 33, 60]) as i32);
    }
    let tokens = starts[starts.len() - 1] as usize + pick(&[0, 0, 1, 11]);
    let (mask, operand) = MASKS[rng.below(MASKS.len())];
    let mut operands = shape.operands(&mut rng, tokens, &starts);
    let operand = operand.map(|(heads, dtype)| {
        let heads = if heads == 1 { 1 } else { shape.heads };
        mask_operand(&mut rng, dtype, [heads, tokens, 61])
    });
    operands.extend(operand);
    let op =
        Attention { mask, scale: [0.1, 0.5, -1.5][rng.below(3)], softcap: [None, Some(3.0)][rng.below(2)] };
    let placement = [Placement::Dense, Placement::Gaps, Placement::Joint][rng.below(3)];
    check_by(BODIES[rng.below(2)], op, &operands, placement, seed);
}

fn sizes_drawn_at_random() {
    (0..16).for_each(drawn);
}
