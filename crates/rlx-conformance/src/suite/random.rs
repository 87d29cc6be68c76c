//! Pseudo-random graphs on a backend, beside the interpreter.

use std::ops::Range;
use std::sync::Arc;

use rlx_ir::interp::RunData;
use rlx_ir::{DType, ErrorKind, Tensor};
use rlx_runtime::Backend;

use crate::Result;
use crate::equivalence::{fill, interpret};
use crate::filetest::on_backend;
use crate::random_graph::random_graph;

/// Compiles and runs a graph of about `nodes` nodes for each seed, and compares outputs and states with the interpreter's. Gives
/// the seeds whose graph the backend refuses, with its reason.
///
/// # Errors
/// What the backend fails with otherwise, and the first difference, with seed and graph.
pub fn check_random_graphs(
    backend: &Arc<dyn Backend>,
    seeds: Range<u64>,
    nodes: usize,
) -> Result<Vec<(u64, String)>> {
    let mut refused = Vec::new();
    for seed in seeds {
        let graph = random_graph(seed, nodes)?;
        let mut data = RunData::default();
        fill(&graph, &mut data)?;
        let place = |e: crate::Error| e.context(format!("the graph of seed {seed}\n{graph}"));
        let ran = match on_backend::run(backend, &graph, &data) {
            Err(e) if e.kind() == ErrorKind::UnsupportedOnDevice => {
                refused.push((seed, e.message().to_owned()));
                continue;
            }
            ran => ran.map_err(place)?,
        };
        let outputs: Vec<Tensor> = interpret(&graph, &mut data)?.into_iter().map(|e| e.tensor).collect();
        on_backend::check(&outputs, &data, &ran, DType::F32).map_err(place)?;
    }
    Ok(refused)
}
