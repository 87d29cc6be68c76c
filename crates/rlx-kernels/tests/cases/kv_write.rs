//! `kv_write` changes a state in place: what it leaves alone must stay.

use rlx_ir::interp::{RunData, SplitMix64, run};
use rlx_ir::ops::state::kv_write::KvWrite;
use rlx_ir::{Builder, DType, Tensor};
use rlx_kernels::call::call;
use rlx_kernels::layout::Layout;

use crate::harness::{FLOATS, Placement, cases, check_in_place, random};

cases! {
    tokens_reach_their_slots_and_nothing_else_changes,
    slots_may_be_skipped_and_written_twice,
    a_slot_beyond_the_pages_is_left_out,
}

/// The state after the interpreter has written.
fn reference(state: &Tensor, x: &Tensor, slots: &[i32]) -> Tensor {
    let slots = Tensor::i32([slots.len()], slots).unwrap();
    let mut b = Builder::new("t");
    let before = b.state("state", state.dtype(), state.shape()).unwrap();
    let tokens = b.input("x", x.dtype(), x.shape()).unwrap();
    let places = b.input("slots", slots.dtype(), slots.shape()).unwrap();
    let after = b.kv_write(before, tokens, places).unwrap();
    let mut data = RunData::default().state("state", state.clone());
    data = data.input("x", x.clone()).input("slots", slots);
    run(&b.finish(&[after]).unwrap(), &mut data).unwrap().remove(0).tensor
}

/// Writes into a copy of the state, as it is done in place.
fn check_write(state: &Tensor, x: &Tensor, slots: &[i32], expected: Tensor, placement: Placement, seed: u64) {
    let slots = Tensor::i32([slots.len()], slots).unwrap();
    let operands = [state.clone(), x.clone(), slots];
    check_in_place("kv_write", expected, state, &operands, (placement, seed), |l| {
        // The state is bound as the result, and is dense as such.
        call(&KvWrite, &[Layout::dense(state.ty()), l[1].clone(), l[2].clone()]).unwrap()
    });
}

fn tokens_reach_their_slots_and_nothing_else_changes() {
    let mut rng = SplitMix64::new(1);
    for x in FLOATS {
        for state in FLOATS {
            for (seed, [heads, dim]) in [[1, 1], [2, 3], [3, 64], [1, 700]].into_iter().enumerate() {
                let state = random(&mut rng, state, &[5, 4, heads, dim], (-2.0, 2.0));
                for (tokens, placement) in [
                    (1, Placement::Dense),
                    (7, Placement::Joint),
                    (7, Placement::Gaps),
                    (19, Placement::Dense),
                ] {
                    let x = random(&mut rng, x, &[tokens, heads, dim], (-2.0, 2.0));
                    let slots: Vec<i32> = (0..tokens).map(|i| (i * 7 + 3) as i32 % 20).collect();
                    let expected = reference(&state, &x, &slots);
                    check_write(&state, &x, &slots, expected, placement, seed as u64);
                }
            }
        }
    }
}

fn slots_may_be_skipped_and_written_twice() {
    let mut rng = SplitMix64::new(2);
    let state = random(&mut rng, DType::F16, &[5, 4, 2, 3], (-2.0, 2.0));
    let x = random(&mut rng, DType::F32, &[300, 2, 3], (-2.0, 2.0));
    let many: Vec<i32> = (0..300).map(|i| if i % 5 == 0 { -1 - i } else { (i * i) % 20 }).collect();
    for seed in 0..3 {
        check_write(&state, &x, &many, reference(&state, &x, &many), Placement::Dense, seed);
    }
}

fn a_slot_beyond_the_pages_is_left_out() {
    let state = Tensor::f32([1, 2, 1, 1], &[1.0, 2.0]).unwrap();
    let x = Tensor::f32([3, 1, 1], &[7.0, 8.0, 9.0]).unwrap();
    let expected = Tensor::f32([1, 2, 1, 1], &[1.0, 8.0]).unwrap();
    check_write(&state, &x, &[2, 1, i32::MAX], expected, Placement::Dense, 1);
}
