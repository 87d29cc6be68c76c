//! Kernels that change a buffer in place: what they leave alone must stay.

use rlx_ir::interp::{RunData, SplitMix64, run};
use rlx_ir::ops::state::kv_write::KvWrite;
use rlx_ir::{Builder, DType, Tensor};
use rlx_kernels::Kernel;
use rlx_kernels::call::call;
use rlx_kernels::geometry::DeviceLimits;
use rlx_kernels::layout::Layout;
use rlx_kernels::manifest::kernels;
use rlx_simulator::{Launch, Library, Simulator};

use crate::harness::{FLOATS, compile, random};

/// The state after the interpreter has written.
fn reference(state: &Tensor, x: &Tensor, slots: &Tensor) -> Tensor {
    let mut b = Builder::new("t");
    let before = b.state("state", state.dtype(), state.shape()).unwrap();
    let tokens = b.input("x", x.dtype(), x.shape()).unwrap();
    let places = b.input("slots", slots.dtype(), slots.shape()).unwrap();
    let after = b.kv_write(before, tokens, places).unwrap();
    let mut data = RunData::default().state("state", state.clone());
    data = data.input("x", x.clone()).input("slots", slots.clone());
    run(&b.finish(&[after]).unwrap(), &mut data).unwrap().remove(0).tensor
}

/// Writes into a copy of the state, as it is done in place, and compares all of it.
fn check_write(library: &Library, state: &Tensor, x: &Tensor, slots: &[i32], gap: usize, seed: u64) {
    let slots = Tensor::i32([slots.len()], slots).unwrap();
    let expected = reference(state, x, &slots);
    let mut layouts = [state, x, &slots].map(|t| Layout::dense(t.ty()));
    let mut sim = Simulator::new();
    // Tokens lie in joint rows.
    let elem = x.dtype().block_bytes();
    let row = x.bytes().len() / x.shape()[0];
    layouts[1].strides[0] += gap;
    let stride = layouts[1].strides[0] * elem;
    let x_buffer = sim.buffer(x.shape()[0] * stride, elem).unwrap();
    for (token, bytes) in x.bytes().chunks(row).enumerate() {
        sim.write(x_buffer, token * stride, bytes).unwrap();
    }
    let state_buffer = sim.buffer_of(state.bytes(), state.dtype().block_bytes()).unwrap();
    let slots_buffer = sim.buffer_of(slots.bytes(), 4).unwrap();
    let call = call(&KvWrite, &layouts).unwrap();
    let geometry = call.work.geometry(DeviceLimits::APPLE, 160).unwrap().unwrap();
    let whole = sim.whole(state_buffer);
    let bindings = [Some(sim.whole(x_buffer)), Some(sim.whole(slots_buffer)), Some(whole)];
    let launch = Launch { kernel: call.kernel, geometry, args: &call.args, bindings: &bindings, seed };
    sim.dispatch(library, &launch).unwrap_or_else(|fault| panic!("{fault}"));
    assert!(sim.read(whole).unwrap() == expected.bytes(), "{} of {slots:?}", call.kernel.name);
}

/// The kernels of `kv_write`, compiled.
fn library() -> Option<Library> {
    let kernels: Vec<Kernel> = kernels().iter().filter(|k| k.name.starts_with("kv_write")).cloned().collect();
    compile(&kernels)
}

#[test]
fn tokens_reach_their_slots_and_nothing_else_changes() {
    let Some(library) = library() else { return };
    let mut rng = SplitMix64::new(1);
    for x in FLOATS {
        for state in FLOATS {
            for (seed, [heads, dim]) in [[1, 1], [2, 3], [3, 64], [1, 700]].into_iter().enumerate() {
                let state = random(&mut rng, state, &[5, 4, heads, dim], (-2.0, 2.0));
                for (tokens, gap) in [(1, 0), (7, 5), (19, 0)] {
                    let x = random(&mut rng, x, &[tokens, heads, dim], (-2.0, 2.0));
                    let slots: Vec<i32> = (0..tokens).map(|i| (i * 7 + 3) as i32 % 20).collect();
                    check_write(&library, &state, &x, &slots, gap, seed as u64);
                }
            }
        }
    }
}

#[test]
fn slots_may_be_skipped_and_written_twice() {
    let Some(library) = library() else { return };
    let mut rng = SplitMix64::new(2);
    let state = random(&mut rng, DType::F16, &[5, 4, 2, 3], (-2.0, 2.0));
    let x = random(&mut rng, DType::F32, &[300, 2, 3], (-2.0, 2.0));
    let many: Vec<i32> = (0..300).map(|i| if i % 5 == 0 { -1 - i } else { (i * i) % 20 }).collect();
    for seed in 0..3 {
        check_write(&library, &state, &x, &many, 0, seed);
    }
}

#[test]
fn a_slot_beyond_the_pages_is_left_out() {
    let Some(library) = library() else { return };
    let mut sim = Simulator::new();
    let state = Tensor::f32([1, 2, 1, 1], &[1.0, 2.0]).unwrap();
    let x = Tensor::f32([3, 1, 1], &[7.0, 8.0, 9.0]).unwrap();
    let slots = Tensor::i32([3], &[2, 1, i32::MAX]).unwrap();
    let layouts = [&state, &x, &slots].map(|t| Layout::dense(t.ty()));
    let call = call(&KvWrite, &layouts).unwrap();
    let geometry = call.work.geometry(DeviceLimits::APPLE, 1024).unwrap().unwrap();
    let buffers = [&x, &slots, &state].map(|t| {
        let buffer = sim.buffer_of(t.bytes(), 4).unwrap();
        sim.whole(buffer)
    });
    let bindings = buffers.map(Some);
    let launch = Launch { kernel: call.kernel, geometry, args: &call.args, bindings: &bindings, seed: 1 };
    sim.dispatch(&library, &launch).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(sim.read(buffers[2]).unwrap(), [1.0f32, 8.0].map(f32::to_le_bytes).concat());
}
