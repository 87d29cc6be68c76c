//! Every kernel against the reference interpreter, in the simulator with all checks on.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../cases/mod.rs"]
mod cases;
mod simulator;

use cases::harness;
use simulator::{Simulated as Device, runner};

#[test]
fn every_case_has_a_name_of_its_own() {
    let mut names: Vec<&str> = cases::FAMILIES.iter().flat_map(|f| f.1).map(|c| c.0).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
