//! Which ops the CPU runs by their reference evaluation: in f64, one element after the other, with a copy of every operand.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use rlx_compile::plan::{Action, Operand, Step};
use rlx_conformance::cases::{Samples, TABLE};
use rlx_cpu::CpuBackend;
use rlx_ir::OpSet;
use rlx_ir::env::Settings;
use rlx_ir::op::Tier;
use rlx_runtime::weights::NoWeights;
use rlx_runtime::{Runtime, Session, SessionOptions};

/// Op and dtypes of the steps that run by reference, each with the reason: none. What is left to the reference evaluation are
/// ops of a program's own that have no kernel; a new core op joins here, or gets a kernel.
const BY_REFERENCE: [(&str, &str); 0] = [];

fn described(step: &Step) -> String {
    let dtypes = |list: &[Operand]| list.iter().map(|o| o.ty.dtype.name()).collect::<Vec<_>>().join(", ");
    let (from, to) = (dtypes(&step.operands), dtypes(&step.results));
    format!("{} {from} -> {to}", step.action.name())
}

#[test]
fn no_step_of_any_case_runs_by_reference_that_is_not_listed() {
    let backend = CpuBackend::new(NonZeroUsize::new(1)).expect("a thread starts");
    let runtime = Runtime::new(vec![Arc::new(backend)], Settings::defaults());
    let (mut by_reference, mut core) = (BTreeSet::new(), BTreeSet::new());
    for case in TABLE {
        let mut samples = Samples::new(case.name(), 1);
        case.generate(&mut samples).unwrap();
        let samples = samples.into_list();
        // Samples of one graph follow each other.
        for group in samples.chunk_by(|a, b| a.graph == b.graph) {
            let options = SessionOptions::default();
            let session = Session::compile(&runtime, &group[0].graph, &NoWeights, &options).unwrap();
            for (step, kernel) in session.plan().steps.iter().zip(session.kernels()) {
                if kernel == "reference" {
                    by_reference.insert(described(step));
                }
                if let Action::Op(op) = &step.action
                    && op.tier() == Tier::Core
                {
                    core.insert(op.name().to_owned());
                }
            }
        }
    }
    let listed: BTreeSet<String> = BY_REFERENCE.iter().map(|(what, _)| (*what).to_owned()).collect();
    assert_eq!(by_reference, listed);
    let all = OpSet::builtin();
    let missing: Vec<&str> =
        all.iter().filter(|d| d.tier == Tier::Core && !core.contains(d.name)).map(|d| d.name).collect();
    assert!(missing.is_empty(), "no case has a step of {missing:?}");
}
