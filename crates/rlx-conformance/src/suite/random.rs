//! Pseudo-random graphs on a backend, beside the interpreter.

use std::ops::Range;
use std::sync::Arc;

use rlx_compile::{CompileOptions, Compute, PrecisionPolicy};
use rlx_ir::interp::RunData;
use rlx_ir::{DType, ErrorKind, Graph, Tensor};
use rlx_runtime::Backend;

use crate::equivalence::{fill, interpret, relative_of};
use crate::filetest::on_backend;
use crate::random_graph::random_graph;
use crate::random_network::{batch, random_network};
use crate::{Error, Result};

/// The sizes of `N`, one after the other in one context: what a larger run left must not show in a smaller one.
const SIZES: [usize; 4] = [3, 8, 0, 1];

/// The same for networks: with tiles of queries, and with few rows.
const TOKENS: [usize; 3] = [41, 11, 0];

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
        let sized = |size: usize| {
            let mut data = RunData::default();
            data.bindings.bind("N", size)?;
            Ok(data)
        };
        let relative = relative_of(DType::F32);
        let why = check_graph(backend, &graph, CompileOptions::default(), &SIZES, sized, relative)
            .map_err(|e| e.context(format!("the graph of seed {seed}\n{graph}")))?;
        refused.extend(why.map(|why| (seed, why)));
    }
    Ok(refused)
}

/// How a random network computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkCompute {
    /// In f32.
    F32,
    /// With activations that are f16 in the graph.
    F16,
    /// In f32 by the graph, of which the compiler makes f16.
    MixedF16,
}

/// Compiles a network of [`random_network`] for each seed, runs it over several batches, and compares outputs with those of the
/// interpreter.
///
/// # Errors
/// What the backend fails with, and the first difference, with seed, size and graph.
pub fn check_random_networks(
    backend: &Arc<dyn Backend>,
    seeds: Range<u64>,
    compute: NetworkCompute,
) -> Result<()> {
    for seed in seeds {
        let graph =
            random_network(seed, if compute == NetworkCompute::F16 { DType::F16 } else { DType::F32 })?;
        let mut options = CompileOptions::default();
        let rounding = if compute == NetworkCompute::F32 { DType::F32 } else { DType::F16 };
        if compute == NetworkCompute::MixedF16 {
            options.precision = PrecisionPolicy::new(Compute::F16);
        }
        let sized = |tokens: usize| batch(seed + tokens as u64, tokens);
        // Roundings of nodes are independent of each other: their sum grows with the root of their number.
        let relative = relative_of(rounding) * (graph.nodes().len() as f64).sqrt();
        let refused =
            check_graph(backend, &graph, options, &TOKENS, sized, relative).and_then(
                |refused| match refused {
                    Some(why) => rlx_ir::bail!(InvalidArgument, "it is refused: {why}"),
                    None => Ok(()),
                },
            );
        refused.map_err(|e| e.context(format!("the network of seed {seed}, {compute:?}\n{graph}")))?;
    }
    Ok(())
}

/// Gives the reason where the backend refuses the graph.
fn check_graph(
    backend: &Arc<dyn Backend>,
    graph: &Graph,
    options: CompileOptions,
    sizes: &[usize],
    sized: impl Fn(usize) -> Result<RunData<'static>>,
    relative: f64,
) -> Result<Option<String>> {
    let session = match on_backend::compile(backend, graph, options) {
        Err(e) if e.kind() == ErrorKind::UnsupportedOnDevice => return Ok(Some(e.message().to_owned())),
        session => session?,
    };
    let mut context = session.context(&[])?;
    for &size in sizes {
        let place = |e: Error| e.context(format!("{size} rows"));
        let mut data = sized(size)?;
        fill(graph, &mut data)?;
        let ran = on_backend::run_in(&mut context, &session, graph, &data).map_err(place)?;
        let outputs = interpret(graph, &mut data)?.into_iter().map(|e| e.tensor);
        let outputs: Vec<Tensor> = outputs.collect();
        on_backend::check(&outputs, &data, &ran, relative).map_err(place)?;
    }
    Ok(None)
}
