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

/// The sizes of `N`, one after the other in one context: what a larger run left must not show in a smaller one.
const SIZES: [usize; 4] = [3, 8, 0, 1];

/// Compiles a graph of about `nodes` nodes for each seed, runs it with several sizes, and compares outputs and states with the
/// interpreter's. Gives the seeds whose graph the backend refuses, with its reason.
///
/// # Errors
/// What the backend fails with otherwise, and the first difference, with seed, size and graph.
pub fn check_random_graphs(
    backend: &Arc<dyn Backend>,
    seeds: Range<u64>,
    nodes: usize,
) -> Result<Vec<(u64, String)>> {
    let mut refused = Vec::new();
    for seed in seeds {
        let graph = random_graph(seed, nodes)?;
        let place = |e: crate::Error| e.context(format!("the graph of seed {seed}\n{graph}"));
        let session = match on_backend::compile(backend, &graph) {
            Err(e) if e.kind() == ErrorKind::UnsupportedOnDevice => {
                refused.push((seed, e.message().to_owned()));
                continue;
            }
            session => session.map_err(place)?,
        };
        let mut context = session.context(&[])?;
        for size in SIZES {
            let place = |e: crate::Error| place(e.context(format!("{size} rows")));
            let mut data = RunData::default();
            data.bindings.bind("N", size)?;
            fill(&graph, &mut data)?;
            let ran = on_backend::run_in(&mut context, &session, &graph, &data).map_err(place)?;
            let outputs = interpret(&graph, &mut data)?.into_iter().map(|e| e.tensor);
            let outputs: Vec<Tensor> = outputs.collect();
            on_backend::check(&outputs, &data, &ran, DType::F32).map_err(place)?;
        }
    }
    Ok(refused)
}
