//! Matrices of simdgroups: what they give, that each access is seen, and that wrong uses are caught.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Setup, data, kernel_with};
use rlx_ir::DType;
use rlx_kernels::Kernel;
use rlx_kernels::manifest::Scratch;
use rlx_simulator::{FaultKind, Mode};

/// A kernel in which `from` and `to` are the 64 elements of `x` and `out` that belong to the threadgroup, and `floats` and
/// `halves` are matrices of threadgroup memory.
fn matrices(name: &str, body: &str) -> Kernel {
    let scratch = vec![
        Scratch { name: "floats", dtype: DType::F32, elems: 64 },
        Scratch { name: "halves", dtype: DType::F16, elems: 64 },
    ];
    let body = format!(
        "device const float* from = x + ids.group * 64; (void)from;\ndevice float* to = out + ids.group * 64; \
         (void)to;\nuint at = ids.thread_index; (void)at;\n{body}"
    );
    kernel_with(name, &body, scratch)
}

/// What the element of `out` at this row and column is, from the matrix of `x`.
type Expected = fn(usize, usize, &dyn Fn(usize, usize) -> f32) -> f32;

const RIGHT: &[(&str, Expected)] = &[
    (
        "simd_matrix<float> m;
         if (ids.simd == 0) { matrix_load(m, from, 8); matrix_store(m, to, 8); }",
        |r, c, x| x(r, c),
    ),
    (
        "simd_matrix<float> m;
         if (ids.simd == 1) { matrix_load_transposed(m, from, 8); matrix_store(m, to, 8); }",
        |r, c, x| x(c, r),
    ),
    // Rows that overlap.
    (
        "simd_matrix<float> m;
         if (ids.simd == 0) { matrix_load(m, from, 4); matrix_store(m, to, 8); }",
        |r, c, x| x((4 * r + c) / 8, (4 * r + c) % 8),
    ),
    (
        "simd_matrix<float> m;
         if (ids.simd == 0) { matrix_load_transposed(m, from, 1); matrix_store(m, to, 8); }",
        |r, c, x| x((r + c) / 8, (r + c) % 8),
    ),
    (
        "simd_matrix<float> a; simd_matrix<float> b; simd_matrix<float> c; simd_matrix<float> d;
         if (ids.simd == 0) {
           matrix_load(a, from, 8);
           matrix_load_transposed(b, from, 8);
           matrix_fill(c, 2.0f);
           matrix_multiply_accumulate(d, a, b, c);
           matrix_store(d, to, 8);
         }",
        |r, c, x| 2.0 + (0..8).map(|k| x(r, k) * x(c, k)).sum::<f32>(),
    ),
    // The result takes the place of an operand.
    (
        "simd_matrix<float> a; simd_matrix<float> b;
         if (ids.simd == 0) {
           matrix_load(a, from, 8);
           matrix_fill(b, 1.0f);
           matrix_multiply_accumulate(a, a, b, a);
           matrix_multiply_accumulate(b, b, b, a);
           matrix_store(b, to, 8);
         }",
        |r, c, x| 8.0 + x(r, c) + (0..8).map(|k| x(r, k)).sum::<f32>(),
    ),
    // Sums over a loop; the matrices of its body begin anew each time.
    (
        "simd_matrix<float> sum;
         matrix_fill(sum, 0.0f);
         for (uint i = 0; i < 3; i++) {
           simd_matrix<float> a; simd_matrix<float> one;
           matrix_load(a, from, 8);
           matrix_fill(one, 1.0f);
           matrix_multiply_accumulate(sum, a, one, sum);
         }
         if (ids.simd == 0) matrix_store(sum, to, 8);",
        |r, _, x| 3.0 * (0..8).map(|k| x(r, k)).sum::<f32>(),
    ),
    // From one simdgroup to the other through threadgroup memory.
    (
        "simd_matrix<float> m;
         if (ids.simd == 1) { matrix_load(m, from, 8); matrix_store(m, floats, 8); }
         barrier_threadgroup();
         if (ids.simd == 0) { matrix_load_transposed(m, floats, 8); matrix_store(m, to, 8); }",
        |r, c, x| x(c, r),
    ),
    // Each simdgroup has matrices of its own.
    (
        "simd_matrix<float> m;
         matrix_fill(m, float(ids.simd + 1));
         if (ids.simd == 0) matrix_store(m, to, 8);",
        |_, _, _| 1.0,
    ),
    // Halves, whose product is a float: 128 x 128 is beyond them.
    (
        "halves[at] = half(from[at]);
         barrier_threadgroup();
         simd_matrix<half> a; simd_matrix<half> b; simd_matrix<float> c;
         if (ids.simd == 0) {
           matrix_load(a, halves, 8);
           matrix_load_transposed(b, halves, 8);
           matrix_fill(c, 0.0f);
           matrix_multiply_accumulate(c, a, b, c);
           matrix_store(c, to, 8);
         }",
        |r, c, x| (0..8).map(|k| x(r, k) * x(c, k)).sum(),
    ),
    (
        "simd_matrix<half> m; simd_matrix<half> filled;
         halves[at] = half(from[at]);
         barrier_threadgroup();
         if (ids.simd == 0) {
           matrix_load(m, halves, 8);
           matrix_fill(filled, half(0.5f));
           simd_matrix<float> sum;
           matrix_fill(sum, 0.0f);
           matrix_multiply_accumulate(sum, m, filled, sum);
           simd_barrier();
           matrix_store(m, halves, 8);
           matrix_store(sum, floats, 8);
         }
         barrier_threadgroup();
         to[at] = float(halves[at]) + floats[at];",
        |r, c, x| x(r, c) + (0..8).map(|k| x(r, k) * 0.5).sum::<f32>(),
    ),
];

#[test]
fn products_and_copies() {
    let kernels: Vec<Kernel> =
        RIGHT.iter().enumerate().map(|(i, (body, _))| matrices(&format!("case{i}"), body)).collect();
    let x = data();
    for mode in [Mode::Fast, Mode::Hooked] {
        let Some(mut setup) = Setup::new(&kernels, mode) else { return };
        for (at, (body, expected)) in RIGHT.iter().enumerate() {
            for seed in 0..3 {
                setup.dispatch(at, seed).unwrap_or_else(|f| panic!("{f}"));
                for (i, got) in setup.out().into_iter().enumerate() {
                    let matrix = &x[i / 64 * 64..][..64];
                    let want = expected(i % 64 / 8, i % 8, &|r, c| matrix[r * 8 + c]);
                    assert_eq!(got, want, "{body}: element {i}");
                }
            }
        }
    }
}

#[test]
fn every_element_that_moves_is_an_access() {
    let body = "simd_matrix<float> m;
        if (ids.simd == 0) { matrix_load(m, from, 8); simd_barrier(); matrix_store(m, to, 8); }";
    let Some(mut setup) = Setup::new(&[matrices("counted", body)], Mode::Hooked) else { return };
    let counts = setup.dispatch(0, 1).unwrap();
    // Two threadgroups; a load, a barrier and a store in each.
    assert_eq!((counts.reads, counts.writes, counts.simd_ops), (128, 128, 6));
}

/// A body, what it does wrong, and whether that is seen without hooks as well.
const WRONG: &[(&str, FaultKind, bool)] = &[
    ("if (ids.lane != 3) matrix_fill(m, 1.0f);", FaultKind::SimdNotReached, true),
    (
        "if (ids.lane != 3) matrix_fill(m, 1.0f);
         barrier_threadgroup();",
        FaultKind::SimdNotReached,
        true,
    ),
    (
        "if (ids.lane < 7) matrix_fill(m, 1.0f);
         else
           matrix_fill(m, 1.0f);",
        FaultKind::SimdNotReached,
        true,
    ),
    (
        "matrix_fill(m, 1.0f);
         for (uint i = 0; i < 1 + ids.lane % 2; i++) matrix_multiply_accumulate(m, m, m, m);
         simd_barrier();",
        FaultKind::SimdNotReached,
        true,
    ),
    ("matrix_fill(m, float(ids.lane / 31));", FaultKind::NotUniform, true),
    ("matrix_load(m, from + ids.lane / 31, 1);", FaultKind::NotUniform, true),
    ("matrix_load(m, from, 1 + ids.lane / 31);", FaultKind::NotUniform, true),
    ("matrix_store(m, floats, 8);", FaultKind::Unwritten, true),
    (
        "simd_matrix<float> sum;
         matrix_fill(m, 1.0f);
         matrix_multiply_accumulate(sum, m, m, sum);",
        FaultKind::Unwritten,
        true,
    ),
    (
        "for (uint i = 0; i < 2; i++) {
           simd_matrix<float> inner;
           if (i == 0) matrix_fill(inner, 1.0f);
           matrix_multiply_accumulate(m, inner, inner, inner);
         }",
        FaultKind::Unwritten,
        true,
    ),
    ("matrix_load(m, from + 1, 8);", FaultKind::OutOfRange, false),
    ("matrix_load(m, from, 9);", FaultKind::OutOfRange, false),
    ("matrix_load_transposed(m, from, 9);", FaultKind::OutOfRange, false),
    (
        "if (ids.simd == 0) { matrix_fill(m, 1.0f); matrix_store(m, floats + 1, 8); }",
        FaultKind::OutOfRange,
        false,
    ),
    (
        "simd_matrix<half> h;
         if (ids.simd == 0) { matrix_fill(h, half(1.0f)); matrix_store(h, halves + 1, 8); }",
        FaultKind::OutOfRange,
        false,
    ),
    ("matrix_load(m, floats, 8);", FaultKind::Unwritten, false),
    ("matrix_fill(m, 1.0f); matrix_store(m, floats, 8);", FaultKind::RaceInGroup, false),
    (
        "matrix_fill(m, 1.0f); if (ids.simd == 0) matrix_store(m, out, 8);",
        FaultKind::RaceBetweenGroups,
        false,
    ),
    // Written and loaded with no barrier between.
    (
        "if (ids.simd == 0) { floats[ids.lane] = 1.0f; floats[ids.lane + 32] = 1.0f; }
         barrier_threadgroup();
         if (ids.simd == 0) {
           floats[ids.lane] = 2.0f;
           floats[ids.lane + 32] = 2.0f;
           matrix_load(m, floats, 8);
         }",
        FaultKind::RaceInGroup,
        false,
    ),
    // Loaded and written with no barrier between.
    (
        "if (ids.simd == 0) { floats[ids.lane] = 1.0f; floats[ids.lane + 32] = 1.0f; }
         barrier_threadgroup();
         if (ids.simd == 0) {
           matrix_load(m, floats, 8);
           floats[ids.lane] = 2.0f;
         }",
        FaultKind::RaceInGroup,
        false,
    ),
    // Nobody knows which lane has which element: not in rows, nor in halves, nor as Apple's hardware has it.
    (
        "if (ids.simd == 0) {
           matrix_fill(m, 1.0f);
           matrix_store(m, floats, 8);
           to[ids.lane] = floats[2 * ids.lane] + floats[2 * ids.lane + 1];
         }",
        FaultKind::RaceInGroup,
        false,
    ),
    (
        "if (ids.simd == 0) {
           matrix_fill(m, 1.0f);
           matrix_store(m, floats, 8);
           to[ids.lane] = floats[ids.lane] + floats[ids.lane + 32];
         }",
        FaultKind::RaceInGroup,
        false,
    ),
    (
        "if (ids.simd == 0) {
           uint quad = ids.lane / 4;
           uint row = quad / 4 * 4 + ids.lane / 2 % 4;
           uint column = quad / 2 % 2 * 4 + ids.lane % 2 * 2;
           matrix_fill(m, 1.0f);
           matrix_store(m, floats, 8);
           to[ids.lane] = floats[row * 8 + column] + floats[row * 8 + column + 1];
         }",
        FaultKind::RaceInGroup,
        false,
    ),
];

#[test]
fn wrong_uses_are_caught_in_every_order_of_threads() {
    let body = |text: &str| format!("simd_matrix<float> m;\n{text}");
    let kernels: Vec<Kernel> =
        WRONG.iter().enumerate().map(|(i, (text, ..))| matrices(&format!("wrong{i}"), &body(text))).collect();
    for mode in [Mode::Hooked, Mode::Fast] {
        let Some(mut setup) = Setup::new(&kernels, mode) else { return };
        for (at, (text, expected, _)) in WRONG.iter().enumerate().filter(|(_, c)| mode == Mode::Hooked || c.2)
        {
            for seed in 0..4 {
                let fault = setup.dispatch(at, seed).unwrap_err();
                assert_eq!(fault.kind, *expected, "{text}, seed {seed}: {fault}");
            }
        }
    }
}

#[test]
fn a_barrier_of_the_simdgroup_orders_a_store_and_a_load() {
    let body = "simd_matrix<float> m;
        if (ids.simd == 0) {
          floats[ids.lane] = from[ids.lane];
          floats[ids.lane + 32] = from[ids.lane + 32];
          simd_barrier();
          matrix_load(m, floats, 8);
          simd_barrier();
          matrix_store(m, floats, 8);
          simd_barrier();
          to[63 - ids.lane] = floats[ids.lane];
          to[31 - ids.lane] = floats[ids.lane + 32];
        }";
    let Some(mut setup) = Setup::new(&[matrices("ordered", body)], Mode::Hooked) else { return };
    setup.dispatch(0, 1).unwrap_or_else(|f| panic!("{f}"));
    let x = data();
    assert!(setup.out().iter().enumerate().all(|(i, v)| *v == x[i / 64 * 64 + 63 - i % 64]));
}

#[test]
fn matrices_are_not_copied() {
    let Some(compiler) = common::compiler() else { return };
    let body =
        "simd_matrix<float> m; matrix_fill(m, 1.0f); simd_matrix<float> n = m; matrix_store(n, to, 8);";
    let refused = compiler.library(&common::text(&[matrices("copied", body)]), Mode::Hooked).unwrap_err();
    assert!(refused.message().contains("deleted"), "{refused}");
}

#[test]
fn an_array_of_threadgroup_memory_ends_where_the_next_one_is_far() {
    let cases = [
        ("floats[at + 1] = 1.0f;", FaultKind::OutOfRange),
        ("if (at == 0) halves[-1] = half(1.0f);", FaultKind::OutOfRange),
        ("if (at == 0) halves[64] = half(1.0f);", FaultKind::OutOfRange),
    ];
    let kernels: Vec<Kernel> = cases
        .iter()
        .enumerate()
        .map(|(i, (body, _))| matrices(&format!("array{i}"), &format!("{body} to[at] = 0.0f;")))
        .collect();
    let Some(mut setup) = Setup::new(&kernels, Mode::Hooked) else { return };
    for (at, (body, kind)) in cases.iter().enumerate() {
        let fault = setup.dispatch(at, 0).unwrap_err();
        assert_eq!(fault.kind, *kind, "{body}: {fault}");
    }
}
