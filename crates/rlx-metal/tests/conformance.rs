//! The conformance suite on simulated hardware, with every access checked.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use std::sync::Arc;

use rlx_conformance::cases::TABLE;
use rlx_conformance::suite::{Exclusion, Options, run};
use rlx_ir::DType;
use rlx_ir::quant::BlockType;
use rlx_runtime::Backend;
use rlx_simulator::Mode;

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
];

/// Cases of ops that have none yet.
const WITHOUT_KERNELS: &[&str] = &[
    "matmul",
    "linear",
    "attention",
    "gather",
    "scatter",
    "iota",
    "argmax",
    "top_k",
    "concat",
    "pad",
    "quantize",
    "dequantize",
    "moe",
    "paged_attention",
    "kv_write",
];

const CAST_TARGETS: [&str; 9] =
    ["to f32", "to f16", "to i8", "to i16", "to i32", "to i64", "to u8", "to u32", "to bool"];

/// What kernels of the slice do not take: dtypes, and data that only an interpreter can refuse.
fn exclusions() -> Vec<Exclusion> {
    let all = |cases: &[&'static str], dtypes: &[DType], reason| {
        let pairs = cases.iter().flat_map(|&case| dtypes.iter().map(move |&dtype| (case, dtype)));
        let make = |(case, dtype)| Exclusion { case, dtype: Some(dtype), label: "", reason };
        pairs.map(make).collect::<Vec<_>>()
    };
    let label = |case, label, reason| Exclusion { case, dtype: None, label, reason };
    let copied = ["reshape", "transpose", "broadcast", "slice"];
    let computed: Vec<&str> = CASES.iter().copied().filter(|c| !copied.contains(c)).collect();
    let computed: Vec<&str> = computed.into_iter().filter(|c| !["cast", "embedding"].contains(c)).collect();
    let mut list = all(&computed, &[DType::BF16, DType::F64], "kernels take f32 and f16");
    // A cast to the own type is nothing.
    let casts = [(DType::BF16, "to f64"), (DType::F64, "to bf16")].into_iter();
    let casts = casts.chain(CAST_TARGETS.iter().flat_map(|to| [(DType::BF16, *to), (DType::F64, *to)]));
    list.extend(casts.map(|(dtype, label)| Exclusion {
        case: "cast",
        dtype: Some(dtype),
        label,
        reason: "kernels take f32 and f16",
    }));
    let blocks: Vec<DType> = BlockType::ALL.iter().map(|b| DType::Block(*b)).collect();
    list.extend(all(&["reduce"], &[DType::I8, DType::I16, DType::I64, DType::U8], "no kernel reduces these"));
    for dtype in [
        DType::F32,
        DType::F16,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U32,
        DType::Bool,
    ] {
        for label in ["to bf16", "to f64"] {
            list.push(Exclusion {
                case: "cast",
                dtype: Some(dtype),
                label,
                reason: "kernels take f32 and f16",
            });
        }
    }
    list.push(label("embedding", "to bf16", "kernels take f32 and f16"));
    list.push(label("embedding", "to f64", "kernels take f32 and f16"));
    list.extend(all(&["embedding"], &[DType::F64], "kernels take f32 and f16"));
    list.push(label("binary", "by zero", "a kernel cannot report a division by zero"));
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
        ("cast", "to bool n=65"),
    ];
    list.extend(of_tiny.map(|(case, label)| Exclusion {
        case,
        dtype: Some(DType::F32),
        label,
        reason: tiny,
    }));
    list.extend(blocks.iter().flat_map(|&dtype| {
        let reason = "there are no kernels for block types";
        let moved = [("reshape", "outer axes"), ("slice", "whole blocks")];
        moved.map(|(case, label)| Exclusion { case, dtype: Some(dtype), label, reason })
    }));
    list
}

#[test]
fn every_case_passes() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let only = std::env::var("ONLY").unwrap_or_default();
    let backends: Vec<Arc<dyn Backend>> = vec![backend];
    let exclusions = exclusions();
    let options = Options {
        exclusions: &exclusions,
        only: &only,
        cases: Some(CASES),
        flushes: true,
        ..Options::default()
    };
    let report = run(&backends, &options).unwrap();
    assert!(report.failures.is_empty(), "{report}");
}

#[test]
fn every_case_is_accounted_for() {
    let mut listed: Vec<&str> = CASES.iter().chain(WITHOUT_KERNELS).copied().collect();
    let mut all: Vec<&str> = TABLE.iter().map(|c| c.name()).collect();
    listed.sort_unstable();
    all.sort_unstable();
    assert_eq!(listed, all);
}
