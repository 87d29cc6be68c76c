//! Running a graph in a session's context.

use std::collections::BTreeMap;
use std::sync::Arc;

use rlx_compile::CompileOptions;
use rlx_ir::env::Settings;
use rlx_ir::{Dim, Graph, Tensor, TensorType};
use rlx_runtime::weights::NoWeights;
use rlx_runtime::{Backend, RunContext, Runtime, Session, SessionOptions, WeightSource};

use crate::Result;
use crate::cases::Sample;

/// Outputs, and states by name as they are after the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) outputs: Vec<Tensor>,
    pub(crate) states: Vec<(String, Tensor)>,
}

/// Sizes, inputs and states of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data<'a> {
    pub(crate) sizes: &'a [(String, usize)],
    pub(crate) inputs: &'a BTreeMap<String, Tensor>,
    pub(crate) states: &'a BTreeMap<String, Tensor>,
}

impl<'a> From<&'a Sample> for Data<'a> {
    fn from(sample: &'a Sample) -> Self {
        Self { sizes: &sample.sizes, inputs: &sample.inputs, states: &sample.states }
    }
}

/// Compiles `graph`, which has no external weights, for `backend`.
pub(crate) fn compile(backend: &Arc<dyn Backend>, graph: &Graph, compile: CompileOptions) -> Result<Session> {
    compile_with(backend, graph, &NoWeights, compile)
}

/// Compiles `graph` for `backend`.
pub(crate) fn compile_with(
    backend: &Arc<dyn Backend>,
    graph: &Graph,
    weights: &dyn WeightSource,
    compile: CompileOptions,
) -> Result<Session> {
    let runtime = Runtime::new(vec![backend.clone()], Settings::defaults());
    let options = SessionOptions { compile, ..SessionOptions::default() };
    Ok(Session::compile(&runtime, graph, weights, &options)?)
}

/// A context whose states have the run's sizes.
pub(crate) fn context<'a>(session: &Session, data: impl Into<Data<'a>>) -> Result<RunContext> {
    let data = data.into();
    let plan = session.plan();
    let symbols: Vec<_> = plan.states.iter().flat_map(|p| p.ty.shape.dims()).flat_map(Dim::symbols).collect();
    let of_states = |name: &str| symbols.iter().any(|s| **s == *name);
    let sizes: Vec<(&str, usize)> =
        data.sizes.iter().map(|(n, s)| (n.as_str(), *s)).filter(|(n, _)| of_states(n)).collect();
    Ok(session.context(&sizes)?)
}

/// Runs on `data`, whatever ran in the context before.
pub(crate) fn execute<'a>(
    session: &Session,
    context: &mut RunContext,
    data: impl Into<Data<'a>>,
) -> Result<Outcome> {
    let data = data.into();
    let plan = session.plan().clone();
    let sizes: Vec<(&str, usize)> = data.sizes.iter().map(|(n, s)| (n.as_str(), *s)).collect();
    context.bind(&sizes)?;
    for port in &plan.states {
        if let Some(tensor) = data.states.get(&port.name) {
            copy(context.state(&port.name)?, tensor.bytes(), &port.name)?;
        }
    }
    for port in &plan.inputs {
        if let Some(tensor) = data.inputs.get(&port.name) {
            copy(context.input_bytes(&port.name)?, tensor.bytes(), &port.name)?;
        }
    }
    context.run()?;
    let mut outputs = Vec::new();
    for (index, operand) in plan.outputs.iter().enumerate() {
        let ty = TensorType::new(operand.ty.dtype, context.output_shape(index)?);
        outputs.push(Tensor::from_bytes(ty, context.output_bytes(index)?.to_vec())?);
    }
    let mut states = Vec::new();
    for port in &plan.states {
        if let Some(tensor) = data.states.get(&port.name) {
            let bytes = context.state(&port.name)?.to_vec();
            states.push((port.name.clone(), Tensor::from_bytes(tensor.ty().clone(), bytes)?));
        }
    }
    Ok(Outcome { outputs, states })
}

fn copy(to: &mut [u8], from: &[u8], name: &str) -> Result<()> {
    use crate::Error;
    if to.len() != from.len() {
        rlx_ir::bail!(Bug, "{name:?} has {} bytes in the context and {} in the sample", to.len(), from.len());
    }
    to.copy_from_slice(from);
    Ok(())
}
