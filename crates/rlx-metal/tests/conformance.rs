//! The conformance suite on simulated hardware, with every access checked.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use std::sync::Arc;

use rlx_conformance::suite::{Exclusion, Options, run};
use rlx_runtime::Backend;
use rlx_simulator::Mode;

#[test]
fn every_case_passes() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let only = std::env::var("ONLY").unwrap_or_default();
    let backends: Vec<Arc<dyn Backend>> = vec![backend];
    let report = run(&backends, &Options { exclusions: EXCLUSIONS, only: &only, ..Options::default() }).unwrap();
    assert!(report.failures.is_empty(), "{report}");
}

const EXCLUSIONS: &[Exclusion] = &[];
