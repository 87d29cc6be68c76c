//! What must hold of every pass, on pseudo-random graphs.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests

use rlx_compile::passes::{PASSES, PassContext};
use rlx_compile::rewrite::PassReport;
use rlx_compile::{
    AnyTarget, CompileOptions, Compute, CoreTarget, OpFacts, PrecisionPolicy, Support, Target, run_passes,
};
use rlx_conformance::equivalence::{fill, numerics_of, same_meaning};
use rlx_conformance::random_graph::random_graph;
use rlx_ir::interp::RunData;
use rlx_ir::text::parse;
use rlx_ir::{Builder, DType, Graph, OpSet, verify};

const SEEDS: u64 = 40;

/// A target with some composites, which differ by seed.
struct SomeOps(u64);

impl Target for SomeOps {
    fn supports(&self, facts: &OpFacts<'_>) -> Support {
        let hash = facts.op.name().bytes().fold(self.0 + 1, |h, b| h.wrapping_mul(31) ^ u64::from(b));
        match CoreTarget.supports(facts) {
            Support::No(reason) if hash.is_multiple_of(2) => Support::No(reason),
            _ => Support::Yes,
        }
    }
}

fn check(seed: u64, before: &Graph, after: &Graph, reports: &[PassReport]) {
    let text = after.to_string();
    verify(after).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    let again = parse(&text, &OpSet::builtin()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
    assert_eq!(again.to_string(), text, "seed {seed}");
    let mut data = RunData::default();
    fill(before, &mut data).unwrap();
    same_meaning(before, after, &data, numerics_of(reports))
        .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{before}{text}"));
}

#[test]
fn every_pass_keeps_the_meaning_and_changes_nothing_the_second_time() {
    for seed in 0..SEEDS {
        let before = random_graph(seed, 30).unwrap();
        let some = SomeOps(seed);
        let targets: [&dyn Target; 4] = [&AnyTarget, &CoreTarget, &NoBlocks, &some];
        for (pass, target) in PASSES.iter().flat_map(|p| targets.map(|t| (p, t))) {
            let precision = PrecisionPolicy::default();
            let cx = PassContext { target, precision: &precision };
            let (after, report) = (pass.run)(before.clone(), &cx).unwrap();
            check(seed, &before, &after, &[report]);
            let (twice, second) = (pass.run)(after.clone(), &cx).unwrap();
            assert_eq!(second.fired, [], "seed {seed}, {}", pass.name);
            assert_eq!(twice, after, "seed {seed}, {}", pass.name);
        }
    }
}

#[test]
fn the_pipeline_keeps_the_meaning_at_every_stage() {
    for seed in 0..SEEDS / 2 {
        let before = random_graph(seed + 1000, 30).unwrap();
        let some = SomeOps(seed);
        let targets: [&dyn Target; 4] = [&AnyTarget, &CoreTarget, &NoBlocks, &some];
        for (stage, target) in rlx_compile::STAGES.iter().flat_map(|s| targets.map(|t| (s, t))) {
            let stop_after = Some(stage.name.to_owned());
            let options = CompileOptions { stop_after, verify: true, ..CompileOptions::default() };
            let (after, reports) = run_passes(before.clone(), target, &options).unwrap();
            check(seed, &before, &after, &reports);
            let (same, _) = run_passes(before.clone(), target, &options).unwrap();
            assert_eq!(same.to_string(), after.to_string(), "seed {seed}: two runs differ");
        }
    }
}

#[test]
fn lower_precision_stays_near() {
    for seed in 0..SEEDS {
        let before = random_graph(seed + 2000, 12).unwrap();
        for compute in [Compute::F16, Compute::BF16, Compute::Int8] {
            let precision = PrecisionPolicy::new(compute);
            let options = CompileOptions { precision, verify: true, ..CompileOptions::default() };
            let (after, reports) = run_passes(before.clone(), &AnyTarget, &options).unwrap();
            check(seed, &before, &after, &reports);
        }
    }
}

/// Each link is lowered because the one before it was.
#[test]
fn a_long_chain_after_a_product_is_lowered_to_its_end() {
    let mut b = Builder::new("chain");
    let x = b.input("x", DType::F32, [2, 4]).unwrap();
    let w = b.weight("w", DType::F32, [4, 4]).unwrap();
    let mut y = b.matmul_transposed(x, w).unwrap();
    for i in 0..150 {
        y = if i % 2 == 0 { b.tanh(y) } else { b.relu(y) }.unwrap();
    }
    let before = b.finish(&[y]).unwrap();
    let precision = PrecisionPolicy::new(Compute::F16);
    let cx = PassContext { target: &AnyTarget, precision: &precision };
    let (after, report) =
        (rlx_compile::passes::by_name("precision").unwrap().run)(before.clone(), &cx).unwrap();
    let casts = after.nodes().iter().filter(|n| n.op.name() == "cast").count();
    assert_eq!(casts, 3, "{after}");
    check(0, &before, &after, &[report]);
}

/// What was verified when it was finished is not verified again; all else is.
#[test]
fn a_graph_that_nobody_verified_is_verified_before_all_passes() {
    let mut b = Builder::new("g");
    let x = b.input("x", DType::F32, [2]).unwrap();
    let y = b.neg(x).unwrap();
    let good = b.finish(&[y]).unwrap();
    assert!(good.is_verified());
    let mut b = Builder::new("g");
    let x = b.input("x", DType::F32, ["N"]).unwrap();
    let bad = b.finish_unverified(&[x]).unwrap();
    assert!(!bad.is_verified());
    let e = run_passes(bad, &AnyTarget, &CompileOptions::default()).unwrap_err();
    assert!(e.message().contains("symbol N is not declared"), "{e}");
    assert!(run_passes(good, &AnyTarget, &CompileOptions::default()).is_ok());
}

/// Runs all but weights in block types.
struct NoBlocks;

impl Target for NoBlocks {
    fn supports(&self, facts: &OpFacts<'_>) -> Support {
        match facts.operands.iter().any(|o| o.ty.dtype.is_block()) {
            true => Support::No("no blocks".to_owned()),
            false => Support::Yes,
        }
    }
}

/// The graphs above are no proof for rules that never fire on them.
#[test]
fn random_graphs_meet_every_rule() {
    let mut met = std::collections::BTreeSet::new();
    for seed in 0..3 * SEEDS {
        let graph = random_graph(seed, 30).unwrap();
        for compute in [Compute::F16, Compute::Int8] {
            let options =
                CompileOptions { precision: PrecisionPolicy::new(compute), ..CompileOptions::default() };
            for target in [&AnyTarget as &dyn Target, &CoreTarget, &NoBlocks] {
                let (_, reports) = run_passes(graph.clone(), target, &options).unwrap();
                met.extend(reports.iter().flat_map(|r| &r.fired).map(|f| f.rule));
            }
        }
    }
    let rules = PASSES.iter().flat_map(|p| p.rules).map(|r| r.name);
    let missing: Vec<&str> = rules.filter(|rule| !met.contains(rule)).collect();
    assert!(missing.is_empty(), "no random graph meets {missing:?}");
}
