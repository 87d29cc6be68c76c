//! Running a case's graph on a backend.

use std::sync::Arc;

use rlx_compile::CompileOptions;
use rlx_ir::interp::RunData;
use rlx_ir::{Bindings, Graph, Tensor, TensorType};
use rlx_runtime::weights::{WeightBytes, WeightData, WeightSource};
use rlx_runtime::{Backend, RunContext, Session};

use crate::equivalence::{near, seeded_by_name};
use crate::suite::execute::{Data, Outcome, compile_with, context, execute};
use crate::{Error, Result};

/// The weights that the interpreter gets too.
struct ByName(Vec<(String, TensorType)>);

impl WeightSource for ByName {
    fn identity(&self) -> &str {
        "by name"
    }

    fn weight(&self, name: &str) -> rlx_runtime::Result<WeightData> {
        let Some((_, ty)) = self.0.iter().find(|(n, _)| n == name) else {
            let message = format!("the graph has no weight {name:?}");
            return Err(rlx_runtime::Error::new(rlx_ir::ErrorKind::NotFound, message));
        };
        let bytes = seeded_by_name(name, ty)?.bytes().to_vec();
        Ok(WeightData { ty: ty.clone(), bytes: WeightBytes::owned(&bytes) })
    }
}

/// Compiles `graph` as users do.
pub(crate) fn compile(backend: &Arc<dyn Backend>, graph: &Graph, options: CompileOptions) -> Result<Session> {
    let weights = graph.weights().map(|(v, name)| Ok((name.to_owned(), graph.ty(v).eval(&Bindings::new())?)));
    let weights = ByName(weights.collect::<Result<_>>()?);
    compile_with(backend, graph, &weights, options)
}

/// Compiles `graph` as users do, and runs it.
pub(crate) fn run(backend: &Arc<dyn Backend>, graph: &Graph, data: &RunData<'_>) -> Result<Outcome> {
    let session = compile(backend, graph, CompileOptions::default())?;
    let sizes = sizes(graph, data);
    let data = Data { sizes: &sizes, inputs: &data.inputs, states: &data.states };
    execute(&session, &mut context(&session, data)?, data)
}

/// Runs `graph` in a context of its session, whatever ran there before.
pub(crate) fn run_in(
    context: &mut RunContext,
    session: &Session,
    graph: &Graph,
    data: &RunData<'_>,
) -> Result<Outcome> {
    let sizes = sizes(graph, data);
    execute(session, context, Data { sizes: &sizes, inputs: &data.inputs, states: &data.states })
}

fn sizes(graph: &Graph, data: &RunData<'_>) -> Vec<(String, usize)> {
    let size = |name: &str| data.bindings.get(name).and_then(|s| usize::try_from(s).ok());
    graph.symbols().names().iter().filter_map(|n| Some((n.to_string(), size(n)?))).collect()
}

/// Compares what a backend made with what the interpreter did, which rounds at other places, relative to the largest value.
pub(crate) fn check(outputs: &[Tensor], data: &RunData<'_>, ran: &Outcome, relative: f64) -> Result<()> {
    for (i, (want, got)) in outputs.iter().zip(&ran.outputs).enumerate() {
        near(want, got, relative).map_err(|e| e.context(format!("output {i} on the device")))?;
    }
    for (name, got) in &ran.states {
        if let Some(want) = data.states.get(name) {
            near(want, got, relative).map_err(|e| e.context(format!("state {name:?} on the device")))?;
        }
    }
    if outputs.len() != ran.outputs.len() {
        rlx_ir::bail!(
            Bug,
            "{} outputs on the device, {} of the interpreter",
            ran.outputs.len(),
            outputs.len()
        );
    }
    Ok(())
}
