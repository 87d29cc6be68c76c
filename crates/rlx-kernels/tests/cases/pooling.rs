use std::sync::Arc;

use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::pooling::l2_normalize::L2Normalize;
use rlx_ir::ops::pooling::pool::{Pool, PoolMode};
use rlx_ir::{Tensor, TensorType};
use rlx_kernels::call::pool_l2_normalize;

use crate::harness::{FLOATS, Placement, WIDTHS, cases, check, check_call, random, reference};

cases! {
    l2_normalize_of_every_width,
    every_mode_over_ragged_sequences,
    a_token_of_nan_stays_in_its_sequence,
    pool_and_normalize_in_one_is_what_both_give,
}

fn l2_normalize_of_every_width() {
    let mut rng = SplitMix64::new(1);
    for dtype in FLOATS {
        for (seed, width) in WIDTHS.into_iter().enumerate() {
            let x = random(&mut rng, dtype, &[3, width], (-2.0, 2.0));
            check(L2Normalize { eps: 1e-12 }, &[x], Placement::Gaps, seed as u64);
        }
        let rows = [[0.0, 0.0], [f64::NAN, 1.0], [1e-3, 0.0]];
        let x = Tensor::from_f64(TensorType::new(dtype, [3, 2]), rows.as_flattened()).unwrap();
        check(L2Normalize { eps: 0.5 }, &[x], Placement::Dense, 0);
    }
}

/// Tokens of sequences of 0, 1, 2, 7 and 40 tokens, with some before and after that belong to none.
fn tokens(rng: &mut SplitMix64, dtype: rlx_ir::DType, width: usize) -> [Tensor; 2] {
    let starts = Tensor::i32([6], &[2, 2, 3, 5, 12, 52]).unwrap();
    [random(rng, dtype, &[55, width], (-2.0, 2.0)), starts]
}

fn every_mode_over_ragged_sequences() {
    let mut rng = SplitMix64::new(2);
    for dtype in FLOATS {
        for &(_, mode) in PoolMode::WORDS {
            for (seed, width) in [1, 33, 384].into_iter().enumerate() {
                let operands = tokens(&mut rng, dtype, width);
                check(Pool { mode }, &operands, Placement::Gaps, seed as u64);
            }
        }
    }
}

fn a_token_of_nan_stays_in_its_sequence() {
    for dtype in FLOATS {
        let ty = TensorType::new(dtype, [4, 1]);
        let x = Tensor::from_f64(ty, &[1.0, f64::NAN, 2.0, 3.0]).unwrap();
        let starts = Tensor::i32([3], &[0, 2, 4]).unwrap();
        for &(_, mode) in PoolMode::WORDS {
            check(Pool { mode }, &[x.clone(), starts.clone()], Placement::Dense, 0);
        }
    }
}

fn pool_and_normalize_in_one_is_what_both_give() {
    let mut rng = SplitMix64::new(3);
    let norm = L2Normalize { eps: 1e-12 };
    for dtype in FLOATS {
        for &(_, mode) in PoolMode::WORDS {
            for width in [1, 33, 384, 1500] {
                let pool = Pool { mode };
                let operands = tokens(&mut rng, dtype, width);
                let pooled = reference(Arc::new(pool), &operands);
                let mut expected = reference(Arc::new(norm), &[pooled[0].tensor.clone()]);
                widen(&mut expected[0], &pooled[0], width);
                check_call("pool and l2_normalize", &expected, &operands, Placement::Gaps, 1, |l| {
                    pool_l2_normalize(&pool, &norm, l).unwrap()
                });
            }
        }
    }
}

/// Adds to the terms of a norm what its operand may be off, divided by the length as the operand is: a rounding of
/// the dtype for each, and the operand's own terms.
fn widen(normed: &mut rlx_ir::op::Evaluated, pooled: &rlx_ir::op::Evaluated, width: usize) {
    let accumulator = rlx_ir::DType::F32.unit_roundoff();
    let off = pooled.tolerance(accumulator).unwrap();
    let values = pooled.tensor.to_f64().unwrap();
    let terms = normed.abs_terms.as_mut().unwrap();
    let k = (normed.terms as f64).sqrt();
    for (row, (off, values)) in off.chunks(width).zip(values.chunks(width)).enumerate() {
        let length = values.iter().map(|v| v * v).sum::<f64>().sqrt();
        let length_off = off.iter().map(|o| o * o).sum::<f64>().sqrt();
        for (i, (o, v)) in off.iter().zip(values).enumerate() {
            if length > 0.0 {
                let change = o / length + v.abs() * length_off / (length * length);
                terms[row * width + i] += change / (4.0 * accumulator * k);
            }
        }
    }
}
