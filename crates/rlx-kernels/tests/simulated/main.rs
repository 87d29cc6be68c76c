//! Every kernel against the reference interpreter, in the simulator with all checks on.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../cases/mod.rs"]
mod cases;
mod simulator;

use cases::harness;
use rlx_kernels::manifest;
use simulator::{Simulated as Device, kernels_of, runner};

#[test]
fn every_case_has_a_name_of_its_own() {
    let mut names: Vec<&str> = cases::FAMILIES.iter().flat_map(|f| f.1).map(|c| c.0).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

/// Random cases do not count: a change of what they draw must leave no kernel without a case.
#[test]
fn every_kernel_of_the_manifest_has_a_case() {
    if runner().is_none() {
        return;
    }
    let families = cases::FAMILIES.iter().filter(|family| family.0 != "random");
    let named = kernels_of(families.flat_map(|family| family.1).map(|case| case.1));
    let names = manifest::kernels().iter().map(|kernel| kernel.name.as_str());
    let missing: Vec<&str> = names.filter(|name| !named.contains(*name)).collect();
    assert!(missing.is_empty(), "no case in tests/cases runs {}", missing.join(", "));
}
