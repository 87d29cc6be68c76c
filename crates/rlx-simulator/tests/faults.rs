//! Each check has a kernel that is wrong on purpose, and the nearest right one, which passes.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::sync::{Arc, OnceLock};

use common::{Setup, kernel};
use rlx_simulator::{FaultKind, Library, Mode};

/// The fault of a kernel on 2 threadgroups of 64 threads; `None` where there is none.
fn fault(setup: &mut Setup, at: usize) -> Option<FaultKind> {
    // Every order of threads must find it.
    let faults: Vec<Option<FaultKind>> =
        (0..3).map(|seed| setup.dispatch(at, seed).err().map(|f| f.kind)).collect();
    assert!(faults.iter().all(|f| f == &faults[0]), "{faults:?}");
    faults[0]
}

macro_rules! cases {
    ($($name:ident: $body:expr => $expected:expr;)*) => {
        const CASES: &[(&str, &str)] = &[$((stringify!($name), $body)),*];

        $(
            #[test]
            fn $name() {
                let expected: Option<FaultKind> = $expected;
                case(stringify!($name), expected);
            }
        )*
    };
}

/// Runs the case of that name, out of one library for all.
fn case(name: &str, expected: Option<FaultKind>) {
    static ALL: OnceLock<Option<Arc<Library>>> = OnceLock::new();
    let kernels: Vec<_> = CASES.iter().map(|(name, body)| kernel(name, body)).collect();
    let build =
        || Some(Arc::new(common::compiler()?.library(&common::text(&kernels), Mode::Hooked).unwrap()));
    let Some(library) = ALL.get_or_init(build) else { return };
    let mut setup = Setup::with(library.clone(), &kernels);
    let at = kernels.iter().position(|k| k.name == name).unwrap();
    assert_eq!(fault(&mut setup, at), expected);
}

cases! {
    each_thread_writes_its_element: "out[index] = x[index];" => None;
    one_element_too_far_is_read: "out[index] = x[index + 1];" => Some(FaultKind::OutOfRange);
    one_element_too_far_is_written: "out[index + 1] = 0.0f;" => Some(FaultKind::OutOfRange);
    one_element_too_early: "out[index] = index == 0 ? x[-1] : 0.0f;" => Some(FaultKind::OutOfRange);
    an_array_of_a_thread_ends: "
        float own[4];
        for (uint i = 0; i < 4; i++) own[i] = x[index];
        out[index] = own[ids.lane % 4 + 1];" => Some(FaultKind::OutOfRange);
    an_array_of_a_thread_is_used_to_its_end: "
        float own[4];
        for (uint i = 0; i < 4; i++) own[i] = x[index];
        out[index] = own[ids.lane % 4];" => None;
    an_array_within_a_struct_ends: "
        struct Pair { float of[2]; float beside; };
        device const Pair* pair = (device const Pair*)x;
        out[index] = pair->of[ids.lane % 2 + 1];" => Some(FaultKind::OutOfRange);
    far_outside_of_everything: "out[index] = *(device const float*)(0x10000ul);" => Some(FaultKind::ForeignMemory);
    an_operand_is_written: "*(device float*)&x[index] = 1.0f; out[index] = 0.0f;" => Some(FaultKind::WriteToReadOnly);
    an_address_is_odd:
        "out[index] = *(device const float*)((device const uchar*)&x[index / 2] + 2);" => Some(FaultKind::Misaligned);
    a_result_is_read_before_it_is_written: "out[index] += 1.0f;" => Some(FaultKind::Unwritten);
    a_result_is_read_after_it_was_written: "out[index] = 1.0f; out[index] += 1.0f;" => None;
    threadgroup_memory_is_read_before_it_is_written:
        "out[index] = scratch[ids.thread_index % 32];" => Some(FaultKind::Unwritten);
    threadgroup_memory_does_not_outlive_its_threadgroup: "
        if (ids.group == 0 && ids.simd == 0) scratch[ids.lane] = 1.0f;
        barrier_threadgroup();
        out[index] = scratch[ids.lane];" => Some(FaultKind::Unwritten);
    threadgroup_memory_ends: "scratch[ids.thread_index] = 1.0f; out[index] = 0.0f;" => Some(FaultKind::OutOfRange);
    all_lanes_write_one_element: "if (ids.lane < 32) scratch[0] = 1.0f; out[index] = 0.0f;" => Some(FaultKind::RaceInGroup);
    one_lane_writes_one_element: "if (ids.thread_index == 0) scratch[0] = 1.0f; out[index] = 0.0f;" => None;
    lanes_read_what_a_lane_wrote: "
        if (ids.simd == 0) scratch[ids.lane] = 0.0f;
        barrier_threadgroup();
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        out[index] = ids.simd == 0 ? scratch[31 - ids.lane] : 0.0f;" => Some(FaultKind::RaceInGroup);
    lanes_read_what_a_lane_wrote_before_a_simdgroup_barrier: "
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        simd_barrier();
        out[index] = ids.simd == 0 ? scratch[31 - ids.lane] : 0.0f;" => None;
    a_simdgroup_barrier_does_not_order_simdgroups: "
        if (ids.simd == 0) scratch[ids.lane] = 0.0f;
        barrier_threadgroup();
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        simd_barrier();
        out[index] = ids.simd == 1 ? scratch[31 - ids.lane] : 0.0f;" => Some(FaultKind::RaceInGroup);
    a_threadgroup_barrier_orders_simdgroups: "
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        barrier_threadgroup();
        out[index] = ids.simd == 1 ? scratch[31 - ids.lane] : 0.0f;" => None;
    a_barrier_of_the_other_memory_does_not_order: "
        if (ids.simd == 0) scratch[ids.lane] = 0.0f;
        barrier_threadgroup();
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        barrier_device();
        out[index] = ids.simd == 1 ? scratch[31 - ids.lane] : 0.0f;" => Some(FaultKind::RaceInGroup);
    a_reduction_does_not_order_memory: "
        if (ids.simd == 0) scratch[ids.lane] = 0.0f;
        barrier_threadgroup();
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        float sum = simd_sum(1.0f);
        out[index] = ids.simd == 0 ? scratch[31 - ids.lane] + sum : 0.0f;" => Some(FaultKind::RaceInGroup);
    what_others_still_read_is_overwritten: "
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        barrier_threadgroup();
        out[index] = scratch[ids.lane];
        if (ids.simd == 1) scratch[ids.lane] = 2.0f;" => Some(FaultKind::RaceInGroup);
    what_lanes_still_read_is_overwritten_by_the_last_that_read: "
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        barrier_threadgroup();
        float v = ids.simd == 0 ? scratch[0] : 0.0f;
        if (ids.thread_index == 0) scratch[0] = v + 1.0f;
        out[index] = v;" => Some(FaultKind::RaceInGroup);
    a_lane_overwrites_what_it_alone_has_read: "
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        barrier_threadgroup();
        float v = ids.simd == 0 ? scratch[ids.lane] : 0.0f;
        if (ids.thread_index == 0) scratch[0] = v + 1.0f;
        out[index] = v;" => None;
    a_simdgroup_barrier_does_not_order_reads_of_two_simdgroups: "
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        barrier_threadgroup();
        float v = scratch[ids.lane];
        simd_barrier();
        if (ids.simd == 0) scratch[ids.lane] = v + 1.0f;
        out[index] = v;" => Some(FaultKind::RaceInGroup);
    a_simdgroup_barrier_orders_reads_of_its_lanes: "
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        barrier_threadgroup();
        float v = ids.simd == 0 ? scratch[31 - ids.lane] : 0.0f;
        simd_barrier();
        if (ids.simd == 0) scratch[ids.lane] = v + 1.0f;
        out[index] = v;" => None;
    what_others_have_read_is_overwritten: "
        if (ids.simd == 0) scratch[ids.lane] = 1.0f;
        barrier_threadgroup();
        out[index] = scratch[ids.lane];
        barrier_threadgroup();
        if (ids.simd == 1) scratch[ids.lane] = 2.0f;" => None;
    device_memory_needs_a_barrier_of_its_own: "
        out[index] = 1.0f;
        barrier_threadgroup();
        float other = out[index ^ 1u];
        barrier_threadgroup();
        out[index] = other;" => Some(FaultKind::RaceInGroup);
    a_simdgroup_barrier_does_not_order_device_memory: "
        out[index] = 1.0f;
        simd_barrier();
        float other = out[index ^ 1u];
        simd_barrier();
        out[index] = other;" => Some(FaultKind::RaceInGroup);
    threadgroup_memory_before_its_start: "
        if (ids.thread_index == 0) scratch[-1] = 1.0f;
        out[index] = 0.0f;" => Some(FaultKind::OutOfRange);
    device_memory_with_a_barrier_of_its_own: "
        out[index] = 1.0f;
        barrier_device();
        float other = out[index ^ 1u];
        barrier_device();
        out[index] = other;" => None;
    threadgroups_write_the_same_bytes: "out[ids.thread_index] = 1.0f;" => Some(FaultKind::RaceBetweenGroups);
    a_threadgroup_reads_what_another_wrote: "
        out[index] = 1.0f;
        barrier_device();
        if (ids.thread_index == 0) out[index] = out[index ^ 64u];" => Some(FaultKind::Unwritten);
    a_barrier_that_half_of_the_threads_skip: "
        if (ids.thread_index < 32) barrier_threadgroup();
        out[index] = 0.0f;" => Some(FaultKind::BarrierNotReached);
    two_barriers_that_threads_divide_between: "
        if (ids.thread_index < 32) barrier_threadgroup();
        else
          barrier_threadgroup();
        out[index] = 0.0f;" => Some(FaultKind::BarrierNotReached);
    two_barriers_of_one_line_that_threads_divide_between: "
        if (ids.thread_index < 32) barrier_threadgroup(); else barrier_device();
        out[index] = 0.0f;" => Some(FaultKind::BarrierNotReached);
    two_reductions_of_one_line_that_lanes_divide_between:
        "out[index] = ids.lane < 7 ? simd_sum(1.0f) : simd_max(1.0f);" => Some(FaultKind::SimdNotReached);
    a_reduction_that_some_lanes_skip: "
        float sum = 0.0f;
        if (ids.lane < 7) sum = simd_sum(1.0f);
        out[index] = sum;" => Some(FaultKind::SimdNotReached);
    two_reductions_that_lanes_divide_between: "
        float sum = 0.0f;
        if (ids.lane < 7) sum = simd_sum(1.0f);
        else
          sum = simd_max(1.0f);
        out[index] = sum;" => Some(FaultKind::SimdNotReached);
    a_simdgroup_barrier_that_some_lanes_skip: "
        if (ids.lane < 7) simd_barrier();
        out[index] = 0.0f;" => Some(FaultKind::SimdNotReached);
    a_barrier_in_a_loop_of_uneven_length: "
        for (uint i = 0; i < ids.thread_index; i++) barrier_threadgroup();
        out[index] = 0.0f;" => Some(FaultKind::BarrierNotReached);
}

#[test]
fn threadgroups_that_read_what_another_writes_race() {
    let bodies = [
        // The first threadgroup reads what the second writes.
        "out[index] = ids.group == 0 ? out[index + 64] : 2.0f;",
        // Both read it, and the one that read last writes: its barrier orders nothing of the other's.
        "float v = out[64 + ids.thread_index]; barrier_device(); if (ids.group == 1) out[index] = v + 1.0f;",
        // Each reads its own.
        "float v = out[index]; barrier_device(); out[index ^ 1u] = v;",
    ];
    let kernels: Vec<_> =
        bodies.iter().enumerate().map(|(i, body)| kernel(&format!("body{i}"), body)).collect();
    let Some(mut setup) = Setup::new(&kernels, Mode::Hooked) else { return };
    let expected = [Some(FaultKind::RaceBetweenGroups), Some(FaultKind::RaceBetweenGroups), None];
    for (at, expected) in expected.into_iter().enumerate() {
        for seed in 0..4 {
            setup.sim.barrier();
            // Results that hold data, so that reading them alone is no fault.
            let parts = setup.parts_between((0, 1));
            let found = setup.dispatch_parts(at, &parts, seed).err().map(|f| f.kind);
            assert_eq!(found, expected, "{}, seed {seed}", bodies[at]);
        }
    }
}

#[test]
fn barriers_are_checked_in_the_fast_mode_too() {
    let barrier = "if (ids.thread_index < 32) barrier_threadgroup(); out[index] = 0.0f;";
    let reduction = "out[index] = ids.lane < 7 ? simd_sum(1.0f) : 0.0f;";
    let kernels = [kernel("barrier", barrier), kernel("reduction", reduction)];
    let Some(mut setup) = Setup::new(&kernels, Mode::Fast) else { return };
    assert_eq!(fault(&mut setup, 0), Some(FaultKind::BarrierNotReached));
    assert_eq!(fault(&mut setup, 1), Some(FaultKind::SimdNotReached));
}

#[test]
fn a_message_names_kernel_place_and_threads() {
    let Some(mut setup) = Setup::new(&[kernel("stray", "out[index + 1] = 0.0f;")], Mode::Hooked) else {
        return;
    };
    let fault = setup.dispatch(0, 0).unwrap_err();
    let expected =
        "stray: threadgroup 1, thread 63 writes 4 bytes from 512 on of binding 2, which is given 512 bytes";
    assert_eq!(fault.message, expected);
}

#[test]
fn dispatches_that_touch_the_same_bytes_need_a_barrier_between() {
    let copy = kernel("copy", "out[index] = x[index];");
    let Some(mut setup) = Setup::new(&[copy], Mode::Hooked) else { return };
    let kinds = |setup: &mut Setup, pairs: [(usize, usize); 2], barrier: bool| {
        setup.sim.barrier();
        setup.dispatch_between(0, pairs[0]).unwrap();
        if barrier {
            setup.sim.barrier();
        }
        setup.dispatch_between(0, pairs[1]).err().map(|f| f.kind)
    };
    let unordered = Some(FaultKind::UnorderedDispatches);
    // From and to: write then read, write then write, read then write, read then read.
    for (pairs, expected) in [
        ([(0, 1), (1, 2)], unordered),
        ([(0, 2), (1, 2)], unordered),
        ([(0, 1), (2, 0)], unordered),
        ([(0, 1), (0, 2)], None),
    ] {
        assert_eq!(kinds(&mut setup, pairs, false), expected, "{pairs:?}");
        assert_eq!(kinds(&mut setup, pairs, true), None, "{pairs:?}");
    }
}

#[test]
fn a_barrier_for_one_buffer_orders_that_buffer_only() {
    let copy = kernel("copy", "out[index] = x[index];");
    let Some(mut setup) = Setup::new(&[copy], Mode::Hooked) else { return };
    setup.dispatch_between(0, (0, 1)).unwrap();
    setup.sim.barrier_for(setup.buffers[0]);
    let unordered = setup.dispatch_between(0, (1, 2)).unwrap_err().kind;
    assert_eq!(unordered, FaultKind::UnorderedDispatches);
    setup.sim.barrier_for(setup.buffers[1]);
    assert_eq!(setup.dispatch_between(0, (1, 2)), Ok(setup.last));
}

#[test]
fn a_new_life_of_a_buffer_forgets_what_was_written() {
    let copy = kernel("copy", "out[index] = x[index];");
    let Some(mut setup) = Setup::new(&[copy], Mode::Hooked) else { return };
    setup.dispatch_between(0, (0, 1)).unwrap();
    setup.sim.barrier();
    let whole = setup.sim.whole(setup.buffers[1]);
    setup.sim.forget(whole).unwrap();
    assert_eq!(setup.dispatch_between(0, (1, 2)).unwrap_err().kind, FaultKind::Unwritten);
}

#[test]
fn launches_that_do_not_fit_are_refused() {
    let copy = kernel("copy", "out[index] = x[index];");
    let Some(mut setup) = Setup::new(&[copy], Mode::Hooked) else { return };
    let mut refused = |change: &dyn Fn(&mut common::Parts)| {
        let mut parts = setup.parts();
        change(&mut parts);
        let fault = setup.dispatch_parts(0, &parts, 0).unwrap_err();
        assert_eq!(fault.kind, FaultKind::Launch, "{fault}");
        fault.message
    };
    assert!(refused(&|p| p.geometry.threads = 33).contains("33 threads"));
    assert!(refused(&|p| p.geometry.threads = 2048).contains("2048 threads"));
    assert!(refused(&|p| p.geometry.groups = [1, 0, 1]).contains("threadgroups"));
    assert!(refused(&|p| p.args.push(0)).contains("bytes of arguments"));
    assert!(refused(&|p| p.bindings.truncate(1)).contains("1 bindings, expected 2"));
    assert!(refused(&|p| p.bindings[0] = None).contains("x is not bound"));
    assert!(refused(&|p| p.bindings[0].as_mut().unwrap().bytes += 1).contains("of a buffer of 512 bytes"));
    assert!(refused(&|p| p.bindings[0].as_mut().unwrap().offset = 2).contains("of a buffer"));
}

#[test]
fn a_thread_that_needs_too_much_stack_is_refused_when_it_is_built() {
    let Some(compiler) = common::compiler() else { return };
    let body = "volatile float big[20000]; big[ids.lane] = 1.0f; out[index] = big[ids.lane];";
    let text = common::text(&[kernel("big", body)]);
    let refused = compiler.library(&text, Mode::Hooked).unwrap_err();
    assert!(refused.message().contains("stack frame size"), "{refused}");
}
