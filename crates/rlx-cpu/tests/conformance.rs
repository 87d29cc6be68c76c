//! The conformance suite on the CPU: with one thread and with two, on every instruction set of the machine.
#![allow(clippy::expect_used)]

use std::num::NonZeroUsize;
use std::sync::Arc;

use rlx_conformance::suite::{Exclusion, Options, check_random_graphs, check_row_independence, run};
use rlx_cpu::CpuBackend;
use rlx_cpu::simd::SimdLevel;
use rlx_runtime::Backend;

fn backends(level: SimdLevel) -> Vec<Arc<dyn Backend>> {
    let backend = |threads| CpuBackend::with_level(NonZeroUsize::new(threads), level).expect("threads start");
    vec![Arc::new(backend(1)), Arc::new(backend(2))]
}

#[test]
fn every_case_passes_on_every_level() {
    let all: Vec<_> = SimdLevel::available().into_iter().flat_map(backends).collect();
    let report = run(&all, &Options::default()).unwrap();
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.samples > 1000, "{report}");
}

#[test]
fn a_row_has_the_same_bits_in_every_batch_and_on_every_number_of_threads() {
    for level in SimdLevel::available() {
        let failures = check_row_independence(&backends(level)).unwrap();
        let list: Vec<String> = failures.iter().map(ToString::to_string).collect();
        assert!(list.is_empty(), "{}", list.join("\n"));
    }
}

#[test]
fn random_graphs_give_what_the_interpreter_gives() {
    let [backend] = &backends(SimdLevel::best())[..1] else { return };
    let refused = check_random_graphs(backend, 0..200, 16).unwrap();
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
fn an_excluded_sample_that_passes_is_a_failure() {
    let reason = "a test";
    let exclusions = [Exclusion { case: "iota", dtype: None, label: "[N] axis 0", reason }];
    let options = Options { exclusions: &exclusions, only: "iota i32", ..Options::default() };
    let report = run(&backends(SimdLevel::best()), &options).unwrap();
    assert_eq!((report.excluded, report.failures.len()), (0, 3), "{report}");
    assert!(report.failures.iter().all(|f| f.what.contains(reason) && f.label.starts_with("[N] axis 0")));
}

#[test]
fn other_bits_of_a_row_are_seen() {
    // Without fused operations a product is rounded before it is added, so that these two are not one device.
    let levels = [SimdLevel::portable(), SimdLevel::best()];
    if levels[0].name() == levels[1].name() || cfg!(target_feature = "fma") {
        return;
    }
    let mixed: Vec<_> = levels.into_iter().map(|l| backends(l).remove(0)).collect();
    let failures = check_row_independence(&mixed).unwrap();
    assert!(failures.iter().any(|f| f.label == "linear of f32" && f.what.contains("rows 5..6")));
}
