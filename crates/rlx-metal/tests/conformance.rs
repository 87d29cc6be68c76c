//! The conformance suite: on the GPU where this is a Mac, else on simulated hardware, with every access checked.
#![cfg(any(target_os = "macos", all(target_os = "linux", target_arch = "x86_64")))]
#![allow(clippy::expect_used)]

#[cfg(not(target_os = "macos"))]
mod common;
#[cfg(target_os = "macos")]
#[path = "common/gpu.rs"]
mod gpu;

use std::sync::Arc;

use rlx_conformance::cases::{Sample, TABLE};
use rlx_conformance::suite::{
    Exclusion, NetworkCompute, Options, check_random_graphs, check_random_networks, run,
};
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::{DType, Def};
use rlx_metal::MetalBackend;
use rlx_runtime::Backend;

/// Cases of ops that have kernels.
const CASES: &[&str] = &[
    "unary",
    "binary",
    "compare",
    "select",
    "cast",
    "reduce",
    "reshape",
    "transpose",
    "broadcast",
    "slice",
    "matmul",
    "linear",
    "gelu",
    "silu",
    "glu",
    "softmax",
    "layer_norm",
    "rms_norm",
    "add_layer_norm",
    "add_rms_norm",
    "pool",
    "l2_normalize",
    "rope",
    "embedding",
    "fused_region",
    "attention",
    "paged_attention",
    "kv_write",
    "embedding_block",
    "pooling_head",
];

/// Cases of ops that have none yet.
const WITHOUT_KERNELS: &[&str] =
    &["gather", "scatter", "iota", "argmax", "top_k", "concat", "pad", "quantize", "dequantize", "moe"];

/// Why the kernels do not run a graph. Weights of bf16 and block types are decoded when they are loaded.
fn refuses(sample: &Sample) -> Option<&'static str> {
    let graph = &sample.graph;
    if ["broadcast", "slice"].contains(&sample.case) && sample.label.starts_with("of a weight") {
        return Some("no kernel makes a view of a weight that takes sizes of the run");
    }
    let mut of_weights: Vec<bool> =
        graph.values().iter().map(|v| matches!(v.def, Def::Weight { .. } | Def::Const(_))).collect();
    for node in graph.nodes() {
        if WITHOUT_KERNELS.contains(&node.op.name()) {
            return Some("an op has no kernel");
        }
        let same = node.op.downcast::<Cast>().is_some_and(|cast| cast.to == graph.ty(node.operands[0]).dtype);
        let moved = ["reshape", "transpose", "broadcast", "slice"].contains(&node.op.name());
        let ready = node.operands.iter().all(|v| of_weights[v.index()]);
        node.results.iter().for_each(|v| of_weights[v.index()] = ready);
        for value in node.operands.iter().chain(&node.results) {
            let dtype = graph.ty(*value).dtype;
            let decoded = of_weights[value.index()];
            match dtype {
                _ if same || ready => {}
                DType::Block(_) if !decoded => return Some("there are no kernels for block types"),
                DType::F64 if !moved => return Some("kernels take f32 and f16"),
                DType::BF16 if !moved && !decoded => return Some("kernels take f32 and f16"),
                DType::I8 | DType::I16 | DType::I64 | DType::U8 if sample.case == "reduce" => {
                    return Some("no kernel reduces these");
                }
                _ => {}
            }
        }
    }
    None
}

/// Data that only the interpreter can refuse, and what becomes of tiny numbers.
fn exclusions() -> Vec<Exclusion> {
    let tiny = "the device takes numbers below the least normal one for zero";
    let of_tiny = [
        ("unary", "sign wide"),
        ("unary", "sqrt wide"),
        ("unary", "rsqrt wide"),
        ("unary", "floor wide"),
        ("unary", "ceil wide"),
        ("unary", "log wide"),
        ("binary", "div equal n=33"),
        ("binary", "rem equal n=33"),
        ("binary", "div over a column n=33"),
        ("cast", "to bool n=65"),
    ];
    let of_tiny =
        of_tiny.map(|(case, label)| Exclusion { case, dtype: Some(DType::F32), label, reason: tiny });
    let reason = "a kernel cannot report a division by zero";
    let by_zero = Exclusion { case: "binary", dtype: None, label: "by zero", reason };
    of_tiny.into_iter().chain([by_zero]).collect()
}

#[cfg(not(target_os = "macos"))]
type Device = rlx_metal::driver::simulator::SimulatorDriver;
#[cfg(target_os = "macos")]
type Device = rlx_metal::driver::objc::ObjcDriver;

#[cfg(not(target_os = "macos"))]
fn backend() -> Option<Arc<MetalBackend<Device>>> {
    common::backend(rlx_simulator::Mode::Hooked)
}

#[cfg(target_os = "macos")]
fn backend() -> Option<Arc<MetalBackend<Device>>> {
    Some(Arc::new(MetalBackend::new(gpu::driver()?).expect("a thread")))
}

/// What keeps the suite short on simulated hardware.
const MOST_FLOPS: u64 = 2_000_000_000;

#[test]
fn every_case_passes_and_every_kernel_runs() {
    let Some(backend) = backend() else { return };
    let only = std::env::var("ONLY").unwrap_or_default();
    let backends: Vec<Arc<dyn Backend>> = vec![backend.clone()];
    let exclusions = exclusions();
    let options = Options {
        exclusions: &exclusions,
        only: &only,
        cases: Some(CASES),
        flushes: true,
        refuses: Some(&refuses),
        ..Options::default()
    };
    let report = run(&backends, &options).unwrap();
    assert!(report.failures.is_empty(), "{report}");
    assert!(report.flops <= MOST_FLOPS, "{report}");
    if only.is_empty() {
        assert!(report.samples - report.excluded > 5000, "{report}");
        assert_every_kernel_ran(&backend);
    }
}

/// Kernels that no case reaches, with the reason.
#[cfg(not(target_os = "macos"))]
const NOT_REACHED: &[(&str, &str)] = &[];

/// Metal does not record what it is asked for.
#[cfg(target_os = "macos")]
fn assert_every_kernel_ran(_: &MetalBackend<Device>) {}

#[cfg(not(target_os = "macos"))]
fn assert_every_kernel_ran(backend: &MetalBackend<Device>) {
    use std::collections::BTreeSet;
    let recording = backend.driver().take_recording();
    let ran: BTreeSet<&str> = recording.dispatches().map(|d| d.kernel.as_str()).collect();
    let all = rlx_kernels::manifest::kernels().iter().map(|k| k.name.as_str());
    let missing: Vec<&str> =
        all.filter(|name| !ran.contains(name) && !NOT_REACHED.iter().any(|(n, _)| n == name)).collect();
    assert!(missing.is_empty(), "no case launches {} kernels: {missing:#?}", missing.len());
    let reached: Vec<_> = NOT_REACHED.iter().filter(|(name, _)| ran.contains(name)).collect();
    assert!(reached.is_empty(), "these are launched: {reached:?}");
}

#[test]
fn random_graphs_give_what_the_interpreter_gives() {
    let Some(backend) = backend() else { return };
    let seeds = 0..280;
    let backend: Arc<dyn Backend> = backend;
    let refused = check_random_graphs(&backend, seeds.clone(), 8).unwrap();
    let ran = seeds.count() - refused.len();
    assert!(ran >= 200, "{ran} graphs ran; refused: {refused:?}");
    let strange: Vec<_> = refused.iter().filter(|(_, reason)| !reason.contains("no kernel")).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

fn check_networks(seeds: std::ops::Range<u64>, compute: NetworkCompute) -> rlx_conformance::Result<()> {
    let Some(backend) = backend() else { return Ok(()) };
    let backend: Arc<dyn Backend> = backend;
    check_random_networks(&backend, seeds, compute)
}

#[test]
fn random_networks_in_f32_give_what_the_interpreter_gives() {
    check_networks(0..100, NetworkCompute::F32).unwrap();
}

#[test]
fn random_networks_of_f16_give_what_the_interpreter_gives() {
    check_networks(100..150, NetworkCompute::F16).unwrap();
}

#[test]
fn random_networks_that_the_compiler_makes_f16_give_what_the_interpreter_gives() {
    check_networks(150..200, NetworkCompute::MixedF16).unwrap();
}

#[test]
fn every_case_is_accounted_for() {
    let mut listed: Vec<&str> = CASES.iter().chain(WITHOUT_KERNELS).copied().collect();
    let mut all: Vec<&str> = TABLE.iter().map(|c| c.name()).collect();
    listed.sort_unstable();
    all.sort_unstable();
    assert_eq!(listed, all);
}
