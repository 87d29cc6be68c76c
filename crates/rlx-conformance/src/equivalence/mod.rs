//! Whether two graphs compute the same: the check that a pass keeps a program's meaning.

use rlx_compile::passes::by_name;
use rlx_compile::rewrite::{Numerics, PassReport};
use rlx_ir::interp::{RunData, run, seeded};
use rlx_ir::op::Evaluated;
use rlx_ir::{DType, Graph, Tensor, TensorType};

use crate::{Error, Result};

/// The size of symbols that nothing else gives.
const DEFAULT_SIZE: usize = 3;

/// Gives every symbol, input and state that `data` lacks a size or pseudo-random values.
///
/// # Errors
/// `InvalidArgument` where a shape has no size.
pub fn fill(graph: &Graph, data: &mut RunData<'_>) -> Result<()> {
    for (values, given) in
        [(graph.inputs().collect::<Vec<_>>(), &data.inputs), (graph.states().collect(), &data.states)]
    {
        for (value, name) in values {
            if let Some(tensor) = given.get(name) {
                data.bindings.unify(&graph.ty(value).shape, tensor.shape())?;
            }
        }
    }
    for name in graph.symbols().names() {
        if data.bindings.get(name).is_none() {
            data.bindings.bind(name, DEFAULT_SIZE)?;
        }
    }
    for (value, name) in graph.inputs() {
        if !data.inputs.contains_key(name) {
            let ty = graph.ty(value).eval(&data.bindings)?;
            data.inputs.insert(name.to_owned(), seeded(&ty, seed_of(name))?);
        }
    }
    for (value, name) in graph.states() {
        if !data.states.contains_key(name) {
            let ty = graph.ty(value).eval(&data.bindings)?;
            data.states.insert(name.to_owned(), seeded(&ty, seed_of(name))?);
        }
    }
    Ok(())
}

/// A seed that depends on the name alone (FNV-1a).
fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

/// The pseudo-random values of the external weight `name`.
pub(crate) fn seeded_by_name(name: &str, ty: &TensorType) -> rlx_ir::Result<Tensor> {
    seeded(ty, seed_of(name))
}

/// Interprets `graph` on `data`; external weights are pseudo-random, by name.
///
/// # Errors
/// Errors of the interpreter.
pub fn interpret(graph: &Graph, data: &mut RunData<'_>) -> Result<Vec<Evaluated>> {
    let weights = seeded_by_name;
    let mut with_weights = RunData {
        inputs: data.inputs.clone(),
        states: data.states.clone(),
        bindings: data.bindings.clone(),
        weights: Some(&weights),
    };
    let outputs = run(graph, &mut with_weights)?;
    data.states = with_weights.states;
    Ok(outputs)
}

/// Checks that `after` computes what `before` does, on `data`, as exactly as `numerics` says. Where `before` refuses the
/// data, `after` must refuse it too.
///
/// # Errors
/// `InvalidArgument` naming the first output or state that differs; errors of the interpreter.
pub fn same_meaning(before: &Graph, after: &Graph, data: &RunData<'_>, numerics: Numerics) -> Result<()> {
    let copy = || RunData {
        inputs: data.inputs.clone(),
        states: data.states.clone(),
        bindings: data.bindings.clone(),
        weights: None,
    };
    let (mut data_before, mut data_after) = (copy(), copy());
    let expected = interpret(before, &mut data_before);
    let got = interpret(after, &mut data_after);
    let (expected, got) = match (expected, got) {
        (Ok(expected), Ok(got)) => (expected, got),
        (Err(e), Err(g)) if e.kind() == g.kind() => return Ok(()),
        (Err(e), _) => return Err(e.context("before the pass")),
        (_, Err(e)) => return Err(e.context("after the pass")),
    };
    if expected.len() != got.len() {
        rlx_ir::bail!(InvalidArgument, "{} outputs became {}", expected.len(), got.len());
    }
    for (i, (e, g)) in expected.iter().zip(&got).enumerate() {
        same_tensor(&e.tensor, &g.tensor, numerics).map_err(|e| e.context(format!("output {i}")))?;
    }
    for (name, e) in &data_before.states {
        let Some(g) = data_after.states.get(name) else {
            rlx_ir::bail!(InvalidArgument, "state {name:?} is gone");
        };
        same_tensor(e, g, numerics).map_err(|e| e.context(format!("state {name:?}")))?;
    }
    Ok(())
}

/// The loosest class of the rules that fired.
pub fn numerics_of(reports: &[PassReport]) -> Numerics {
    let rules = || reports.iter().flat_map(|r| by_name(r.pass)).flat_map(|p| p.rules);
    let fired = reports.iter().flat_map(|r| &r.fired);
    fired
        .filter_map(|f| rules().find(|r| r.name == f.rule))
        .map(|r| r.numerics)
        .max()
        .unwrap_or(Numerics::Exact)
}

fn same_tensor(expected: &Tensor, got: &Tensor, numerics: Numerics) -> Result<()> {
    let relative = match numerics {
        Numerics::Exact => 0.0,
        Numerics::Reassociates => 64.0 * expected.dtype().unit_roundoff(),
        // A few roundings to 8 bits.
        Numerics::LowersPrecision => 8.0 * DType::BF16.unit_roundoff(),
    };
    near(expected, got, relative).map_err(|e| e.context(format!("{numerics:?}")))
}

/// How far results of a graph of several ops may be apart, relative to the largest, where values are rounded to `rounding` at
/// other places.
pub(crate) fn relative_of(rounding: DType) -> f64 {
    rounding.unit_roundoff().max(64.0 * DType::F32.unit_roundoff())
}

/// Checks that two tensors have one type, and values no further apart than `relative` times the largest of `expected` (at
/// least 1); with 0 the same bits, but for those of NaN.
///
/// # Errors
/// `InvalidArgument` naming the first element that differs.
pub(crate) fn near(expected: &Tensor, got: &Tensor, relative: f64) -> Result<()> {
    if expected.ty() != got.ty() {
        rlx_ir::bail!(InvalidArgument, "{} became {}", expected.ty(), got.ty());
    }
    if expected.bytes() == got.bytes() {
        return Ok(());
    }
    let (e, g) = (expected.to_f64()?, got.to_f64()?);
    // Rounding errors grow with the largest values that were added up, which the results bound from below.
    let scale = e.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
    let allowed = relative * scale;
    let same = |e: f64, g: f64| {
        (e.is_nan() && g.is_nan()) || e.to_bits() == g.to_bits() || {
            relative != 0.0 && (e == g || (e - g).abs() <= allowed)
        }
    };
    match e.iter().zip(&g).position(|(&e, &g)| !same(e, g)) {
        None => Ok(()),
        Some(i) => rlx_ir::bail!(
            InvalidArgument,
            "element {i} was {:?} and is {:?}, which may be {allowed:e} apart",
            e[i],
            g[i]
        ),
    }
}
