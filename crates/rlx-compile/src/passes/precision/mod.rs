//! `precision`: the policy's types, made visible as `cast` and `quantize` nodes.
//!
//! Only activations change, and float weights of products, which are cast once, at load. Norms, softmax and attention take
//! and give the lower type, but accumulate in f32 as their definition says; norm weights, biases and rotary frequencies
//! stay as they are. What several nodes read is cast or quantised once.

mod half;
mod int8;

use rlx_ir::Graph;

use super::{Pass, PassContext, cse, dce};
use crate::Result;
use crate::precision::Compute;
use crate::rewrite::{PassReport, Rule, rewrite};

const NAME: &str = "precision";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

const RULES: &[Rule] = &[int8::QUANTIZE_ACTIVATION, half::CANCEL_CASTS, half::LOWER_TO_HALF];

/// Applies the policy.
///
/// # Errors
/// `Bug` where a patch does not fit.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    if cx.precision.compute == Compute::F32 {
        let nodes = graph.nodes().len();
        let report =
            PassReport { pass: NAME, nodes_before: nodes, nodes_after: nodes, ..PassReport::default() };
        return Ok((graph, report));
    }
    let (graph, mut report) = rewrite(NAME, RULES, graph, cx)?;
    if report.fired.is_empty() {
        return Ok((graph, report));
    }
    // Each reader got a cast of its own; casts that were cancelled are still there.
    let (graph, _) = cse::run(graph, cx)?;
    let (graph, _) = dce::run(graph, cx)?;
    report.nodes_after = graph.nodes().len();
    Ok((graph, report))
}
