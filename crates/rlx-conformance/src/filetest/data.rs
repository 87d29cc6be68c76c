//! Inputs, states, sizes and expected outputs of a case.

use rlx_ir::interp::{RunData, seeded};
use rlx_ir::text::parse;
use rlx_ir::{Bindings, Def, Graph, OpSet, Tensor, WeightInit};

use super::case::{Case, Keyword};
use crate::equivalence::fill;
use crate::{Error, Result};

/// The tensor of `"NAME" : TYPE = LITERAL`, with its name.
fn named_tensor(text: &str) -> Result<(String, Tensor)> {
    let graph = format!("graph @literal {{ %v = weight {text} return %v }}");
    let graph = parse(&graph, &OpSet::builtin()).map_err(|e| Error::from(e).context(text))?;
    let info = graph.value(graph.outputs()[0]);
    let Def::Weight { name, init } = &info.def else {
        rlx_ir::bail!(InvalidArgument, "{text}: expected \"name\" : type = values");
    };
    let tensor = match init {
        WeightInit::Inline(t) => (**t).clone(),
        WeightInit::Seed(seed) => seeded(&info.ty.eval(&Bindings::new())?, *seed)?,
        WeightInit::External => rlx_ir::bail!(InvalidArgument, "{text}: expected values"),
    };
    Ok((name.to_string(), tensor))
}

/// What the case gives for a run of `graph`; the rest is pseudo-random.
pub(super) fn run_data(case: &Case, graph: &Graph) -> Result<RunData<'static>> {
    let mut data = RunData::default();
    for text in case.of(Keyword::Size) {
        match text.split_once('=').map(|(s, n)| (s.trim(), n.trim().parse())) {
            Some((symbol, Ok(size))) => data.bindings.bind(symbol, size)?,
            _ => rlx_ir::bail!(InvalidArgument, "size: {text}: expected SYMBOL = N"),
        }
    }
    for text in case.of(Keyword::Input) {
        let (name, tensor) = named_tensor(text)?;
        data.inputs.insert(name, tensor);
    }
    for text in case.of(Keyword::State) {
        let (name, tensor) = named_tensor(text)?;
        data.states.insert(name, tensor);
    }
    fill(graph, &mut data)?;
    Ok(data)
}

/// Checks the `output:` and `state-after:` lines.
pub(super) fn check_results(case: &Case, outputs: &[Tensor], data: &RunData<'_>) -> Result<()> {
    let tolerance = |text: &str| -> Result<(String, f64)> {
        match text.rsplit_once(" tol ") {
            None => Ok((text.to_owned(), 0.0)),
            Some((text, tol)) => match tol.trim().parse() {
                Ok(tol) => Ok((text.to_owned(), tol)),
                Err(_) => rlx_ir::bail!(InvalidArgument, "{tol:?} is no tolerance"),
            },
        }
    };
    for text in case.of(Keyword::Output) {
        let (text, tol) = tolerance(text)?;
        let Some((index, rest)) = text.split_once(':') else {
            rlx_ir::bail!(InvalidArgument, "output: {text}: expected INDEX : TYPE = VALUES");
        };
        let output = index.trim().parse::<usize>().ok().and_then(|i| outputs.get(i));
        let Some(output) = output else { rlx_ir::bail!(InvalidArgument, "there is no output {index}") };
        let (_, expected) = named_tensor(&format!("\"output\" : {rest}"))?;
        close(output, &expected, tol).map_err(|e| e.context(format!("output {}", index.trim())))?;
    }
    for text in case.of(Keyword::StateAfter) {
        let (text, tol) = tolerance(text)?;
        let (name, expected) = named_tensor(&text)?;
        let Some(state) = data.states.get(&name) else {
            rlx_ir::bail!(InvalidArgument, "there is no state {name:?}");
        };
        close(state, &expected, tol).map_err(|e| e.context(format!("state {name:?}")))?;
    }
    Ok(())
}

fn close(got: &Tensor, expected: &Tensor, tol: f64) -> Result<()> {
    if got.ty() != expected.ty() {
        rlx_ir::bail!(InvalidArgument, "it is {}, expected {}", got.ty(), expected.ty());
    }
    if got.dtype().is_int() {
        let (g, e) = (got.to_i64()?, expected.to_i64()?);
        return match g.iter().zip(&e).position(|(g, e)| g != e) {
            None => Ok(()),
            Some(i) => rlx_ir::bail!(InvalidArgument, "element {i} is {}, expected {}", g[i], e[i]),
        };
    }
    let (g, e) = (got.to_f64()?, expected.to_f64()?);
    let near =
        |g: f64, e: f64| (g.is_nan() && e.is_nan()) || g == e || (g - e).abs() <= tol * e.abs().max(1.0);
    match g.iter().zip(&e).position(|(&g, &e)| !near(g, e)) {
        None => Ok(()),
        Some(i) => rlx_ir::bail!(InvalidArgument, "element {i} is {:?}, expected {:?}", g[i], e[i]),
    }
}
