//! What the functions of the dialect give in the simulator, in both modes, and that no access goes unseen.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{ELEMS, Setup, data, kernel};
use rlx_kernels::geometry::Geometry;
use rlx_simulator::Mode;

/// What a thread, a lane and the `x` of its simdgroup give.
type Expected = Box<dyn Fn(usize, usize, &[f32]) -> f32>;

/// Bodies with what they give.
#[derive(Default)]
struct Cases(Vec<(String, Expected)>);

impl Cases {
    fn add(&mut self, body: &str, expected: impl Fn(usize, usize, &[f32]) -> f32 + 'static) {
        self.0.push((body.to_owned(), Box::new(expected)));
    }

    /// Runs all in both modes and in several orders.
    fn run(&self) {
        let kernels: Vec<_> =
            self.0.iter().enumerate().map(|(i, (body, _))| kernel(&format!("case{i}"), body)).collect();
        let x = data();
        for mode in [Mode::Fast, Mode::Hooked] {
            let Some(mut setup) = Setup::new(&kernels, mode) else { return };
            for (at, (body, expected)) in self.0.iter().enumerate() {
                for seed in [0, 1, 2] {
                    setup.dispatch(at, seed).unwrap_or_else(|f| panic!("{f}"));
                    for (i, got) in setup.out().into_iter().enumerate() {
                        let want = expected(i, i % 32, &x[i / 32 * 32..][..32]);
                        let fits = got == want || got.is_nan() && want.is_nan();
                        assert!(fits, "{body}: thread {i}: {got}, expected {want}");
                    }
                }
            }
        }
    }
}

#[test]
fn reductions_of_a_simdgroup() {
    let mut cases = Cases::default();
    cases.add("out[index] = simd_sum(x[index]);", |_, _, x| x.iter().sum());
    cases.add("out[index] = simd_max(-x[index]);", |_, _, x| -x[0]);
    cases.add("out[index] = simd_min(x[index]);", |_, _, x| x[0]);
    cases.add("out[index] = float(simd_sum(uint(x[index])));", |_, _, x| x.iter().sum());
    cases.add("out[index] = float(simd_max(-int(x[index])));", |_, _, x| -x[0]);
    cases.add("out[index] = float(simd_min(int(x[index]) - 1000));", |_, _, x| x[0] - 1000.0);
    cases.add("out[index] = float(simd_max(uint(x[index])) - simd_min(uint(x[index])));", |_, _, _| 31.0);
    cases.run();
}

#[test]
fn a_number_wins_over_nan_in_maximum_and_minimum() {
    let mut cases = Cases::default();
    cases.add("out[index] = simd_max(ids.lane == 3 ? NAN : x[index]);", |_, _, x| x[31]);
    cases.add("out[index] = simd_min(ids.lane == 0 ? NAN : x[index]);", |_, _, x| x[1]);
    cases.add("out[index] = simd_max(NAN + x[index]);", |_, _, _| f32::NAN);
    cases.run();
}

#[test]
fn shuffles_and_votes() {
    let mut cases = Cases::default();
    cases.add("out[index] = simd_shuffle(x[index], ushort(31 - ids.lane));", |_, lane, x| x[31 - lane]);
    cases.add("out[index] = simd_shuffle_xor(x[index], ushort(5));", |_, lane, x| x[lane ^ 5]);
    cases.add("out[index] = simd_broadcast(x[index], ushort(7));", |_, _, x| x[7]);
    cases.add(
        "float v = simd_shuffle_down(x[index], ushort(1)); out[index] = ids.lane < 31 ? v : 0.0f;",
        |_, lane, x| {
            if lane < 31 { x[lane + 1] } else { 0.0 }
        },
    );
    cases.add(
        "float v = simd_shuffle_up(x[index], ushort(2)); out[index] = ids.lane > 1 ? v : 0.0f;",
        |_, lane, x| {
            if lane > 1 { x[lane - 2] } else { 0.0 }
        },
    );
    cases.add("out[index] = simd_shuffle_down(x[index], ushort(1));", |_, lane, x| {
        if lane < 31 { x[lane + 1] } else { f32::from_bits(0x7fc0_dead) }
    });
    cases
        .add("out[index] = simd_ballot_mask(ids.lane % 3 == 0) == 0x49249249u ? 1.0f : 0.0f;", |_, _, _| 1.0);
    cases.run();
}

#[test]
fn threads_know_where_they_stand() {
    let mut cases = Cases::default();
    cases.add("out[index] = float(ids.group * 1000 + ids.thread_index);", |i, _, _| {
        (i / 64 * 1000 + i % 64) as f32
    });
    cases.add("out[index] = float(ids.simd * 100 + ids.lane);", |i, lane, _| {
        (i % 64 / 32 * 100 + lane) as f32
    });
    cases.add("out[index] = float(ids.groups * 10000 + ids.threads * 10 + ids.simds);", |_, _, _| 20642.0);
    cases.run();
}

#[test]
fn values_pass_through_threadgroup_memory() {
    let mut cases = Cases::default();
    let body = "
        if (ids.simd == 1) scratch[ids.lane] = x[index];
        barrier_threadgroup();
        float v = scratch[31 - ids.lane];
        barrier_threadgroup();
        if (ids.simd == 0) scratch[ids.lane] = v + 1.0f;
        barrier_threadgroup();
        out[index] = scratch[ids.lane];";
    cases.add(body, |i, lane, _| (i / 64 * 64 + 32 + 31 - lane) as f32 + 2.0);
    cases.run();
}

#[test]
fn denormals_are_zero() {
    let mut cases = Cases::default();
    cases.add("out[index] = x[index] * 1e-40f;", |_, _, _| 0.0);
    cases.add("out[index] = x[index] * 1e-25f * 1e-20f;", |_, _, _| 0.0);
    let smallest = f32::MIN_POSITIVE;
    cases.add("out[index] = x[index] > 0.0f ? 1.17549435e-38f : 0.0f;", move |_, _, _| smallest);
    cases.run();
}

#[test]
fn every_access_is_seen() {
    // Neighbours that a compiler likes to join, and the read of a sum.
    let cases = [
        ("out[index] = x[index];", 1, 1),
        ("out[index] = 1.0f; barrier_device(); out[index] += x[index];", 2, 2),
        ("uint a = index / 4 * 4; out[index] = x[a] + x[a + 1] + x[a + 2] + x[a + 3];", 4, 1),
        ("float s = 0.0f; for (uint k = 0; k < 8; k++) s += x[index / 8 * 8 + k]; out[index] = s;", 8, 1),
        // What is vectorised wherever clang may.
        ("if (ids.lane == 0) { for (uint i = 0; i < 32; i++) out[index + i] = x[index + i] + 1.0f; }", 1, 1),
        (
            "if (ids.simd == 0) scratch[ids.lane] = x[index]; barrier_threadgroup(); out[index] = scratch[ids.lane];",
            0,
            0,
        ),
    ];
    for (body, reads, writes) in cases {
        let Some(mut setup) = Setup::new(&[kernel("counted", body)], Mode::Hooked) else { return };
        let counts = setup.dispatch(0, 0).unwrap_or_else(|f| panic!("{f}"));
        let n = ELEMS as u64;
        // The last case: half of the threads read x and write scratch, all read scratch and write out.
        let (reads, writes) = if reads == 0 { (n / 2 + n, n / 2 + n) } else { (reads * n, writes * n) };
        assert_eq!((counts.reads, counts.writes), (reads, writes), "{body}");
    }
}

#[test]
fn an_access_that_no_hook_would_see_is_refused() {
    let loop_of = |pragma: &str| format!("\n{pragma}\nfor (uint i = 0; i < 64; i++) out[i] = x[i] + 1.0f;");
    let forced = loop_of("#pragma clang loop vectorize(enable) vectorize_width(8)");
    let wide = "typedef float Wide __attribute__((ext_vector_type(8)));
        *(device Wide*)out = *(device const Wide*)x + 1.0f;"
        .to_owned();
    let quad = wide.replace("(8)", "(4)");
    let Some(compiler) = common::compiler() else { return };
    let build = |body: &str| compiler.library(&common::text(&[kernel("body", body)]), Mode::Hooked);
    for body in [&forced, &wide] {
        let Err(refused) = build(body) else { panic!("{body} is taken") };
        assert!(refused.message().contains("no hook sees"), "{body}: {refused}");
    }
    for body in [&loop_of(""), &quad] {
        build(body).unwrap_or_else(|e| panic!("{body}: {e}"));
    }
}

/// Which turn each of 64 threads, or of 64 threadgroups, takes.
fn turns(setup: &mut Setup, kernel: usize, seed: u64) -> Vec<f32> {
    // A count of turns, in the last element.
    setup.sim.write(setup.buffers[3], 0, &vec![0; ELEMS * 4]).unwrap();
    let mut parts = setup.parts();
    parts.geometry =
        [Geometry { groups: [1, 1, 1], threads: 64 }, Geometry { groups: [64, 1, 1], threads: 32 }][kernel];
    setup.dispatch_parts(kernel, &parts, seed).unwrap_or_else(|f| panic!("{f}"));
    setup.out()[..64].to_vec()
}

#[test]
fn a_seed_is_an_order_of_threads_and_of_threadgroups() {
    // Races on purpose, which the fast mode does not check.
    let threads = "float turn = out[127]; out[127] = turn + 1.0f; out[ids.thread_index] = turn;";
    let groups =
        "if (ids.lane == 0) { float turn = out[127]; out[127] = turn + 1.0f; out[ids.group] = turn; }";
    let kernels = [kernel("threads", threads), kernel("groups", groups)];
    let Some(mut setup) = Setup::new(&kernels, Mode::Fast) else { return };
    let natural: Vec<f32> = (0..64).map(|i| i as f32).collect();
    for kernel in [0, 1] {
        let orders: Vec<Vec<f32>> = (0..4).map(|seed| turns(&mut setup, kernel, seed)).collect();
        for (seed, order) in orders.iter().enumerate() {
            assert_eq!(order, &turns(&mut setup, kernel, seed as u64), "seed {seed} does not repeat");
            let mut all = order.clone();
            all.sort_by(f32::total_cmp);
            assert_eq!(all, natural, "seed {seed}");
            assert!(!orders[..seed].contains(order), "seed {seed} is the order of another");
        }
    }
}

#[test]
fn barriers_and_reductions_are_counted() {
    let body =
        "barrier_threadgroup(); float v = simd_sum(1.0f); simd_barrier(); barrier_device(); out[index] = v;";
    let Some(mut setup) = Setup::new(&[kernel("counted", body)], Mode::Hooked) else { return };
    let counts = setup.dispatch(0, 0).unwrap();
    assert_eq!((counts.barriers, counts.simd_ops), (2 * 2, 2 * 4));
}
